import CService
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// `tokens/SERIAL`: the hardware tokens that this machine knows. No login reads them.

extension Store {
  package static var tokens: Path { "tokens" }

  /// The token with this serial number; nil if there is none, or no inventory.
  package func token(_ serial: TokenSerial) throws(StoreTrouble) -> Token? {
    guard let folder = try inventory() else { return nil }
    return try folder.token(Path(serial.fileName))
  }

  /// Those with these serial numbers that are there, or all, sorted by their files' names; each,
  /// or why it cannot be read. Nothing without a store.
  package func eachToken(
    of serials: [TokenSerial]? = nil,
    _ body: (_ file: String, Result<Token, StoreTrouble>) -> Void
  ) throws(StoreTrouble) {
    guard let folder = try inventory() else { return }
    let names: [[UInt8]]
    if let serials {
      names = serials.map(\.fileName)
    } else {
      names = try folder.names().map(\.bytes)
    }
    for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      do throws(StoreTrouble) {
        guard let token = try folder.token(Path(name)) else { continue }
        body(Path(name).text, .success(token))
      } catch {
        body(Path(name).text, .failure(error))
      }
    }
  }

  private func inventory() throws(StoreTrouble) -> StoreFolder? {
    do throws(StoreTrouble) {
      return try folder(Store.tokens)
    } catch {
      if case .noStore = error { return nil }
      throw error
    }
  }

  /// Adds tokens; after a crash each is there whole, or not at all. Throws `exists` where one of
  /// them is there, and adds none then. Called for `batch` of them at a time.
  package func add(_ tokens: some Collection<Token>) throws(StoreTrouble) {
    try changing { users throws(StoreTrouble) in
      try makeDirectory(root / Store.tokens)
      guard let folder = try folder(Store.tokens) else {
        throw .noStore(path: (root / Store.tokens).text)
      }
      for token in tokens where try folder.has(Path(token.serial.fileName)) {
        throw .exists(path: (folder.path / Path(token.serial.fileName)).text)
      }
      try put(tokens, in: folder, by: users)
    }
  }

  /// Makes the files, syncs them together, and puts each in its place.
  private func put(
    _ tokens: some Collection<Token>, in folder: borrowing StoreFolder,
    by users: borrowing StoreFolder
  ) throws(StoreTrouble) {
    var made: [(file: Path, serial: TokenSerial)] = []
    do throws(StoreTrouble) {
      for token in tokens {
        let file = Leftover.named(Leftover.unfinished, hexadecimal(try Random.identifier()))
        made.append((file, token.serial))
        try users.write(try text(of: token), as: file, synced: false)
      }
      try check(sys_sync_file_system(users.number), "syncfs", users.path)
      for (file, serial) in made {
        try users.rename(file, to: Path(serial.fileName), in: folder)
      }
      try users.sync()
      try folder.sync()
    } catch {
      for (file, _) in made { users.erase(file) }
      throw error
    }
  }

  /// What comes of `distrustTokens`: how many, and why others were not.
  package typealias DistrustedTokens = (
    done: Int, failed: [(file: String, trouble: StoreTrouble)]
  )

  /// Takes as used what may have been used of the tokens on the machine that the store comes from,
  /// while nobody assigns one. `files`: of these names alone; nil: of all.
  package func distrustTokens(named files: [String]? = nil, at now: UnixTime) throws(StoreTrouble)
    -> DistrustedTokens
  {
    let done = try holdingTokens { () -> Result<DistrustedTokens, StoreTrouble> in
      do throws(StoreTrouble) {
        return .success(try distrustHeld(named: files, at: now))
      } catch {
        return .failure(error)
      }
    }
    return try done?.get() ?? (0, [])
  }

  private func distrustHeld(named files: [String]?, at now: UnixTime) throws(StoreTrouble)
    -> DistrustedTokens
  {
    var (tokens, failed) = ([Token](), [(file: String, trouble: StoreTrouble)]())
    try eachToken { file, read in
      if files?.contains(file) == false { return }
      switch read {
      case .success(let token): tokens.append(token.distrusted(at: now))
      case .failure(let trouble): failed.append((file, trouble))
      }
    }
    for start in stride(from: 0, to: tokens.count, by: Store.batch) {
      try changing { users throws(StoreTrouble) in
        guard let folder = try folder(Store.tokens) else { return }
        // Some may have been forgotten since they were read.
        var there: [Token] = []
        for token in tokens[start..<min(start + Store.batch, tokens.count)]
        where try folder.has(Path(token.serial.fileName)) {
          there.append(token)
        }
        try put(there[...], in: folder, by: users)
      }
    }
    return (tokens.count, failed)
  }

  /// Calls `body` while no other command assigns a token or takes one back. Taken before the lock
  /// of all commands, and not while that is held. nil: there is no inventory.
  package func holdingTokens<Value>(_ body: () -> Value) throws(StoreTrouble) -> Value? {
    guard let folder = try inventory() else { return nil }
    return try folder.locked(body)
  }

  /// Puts the token in the place of the one with its serial number; on disk before it returns.
  package func replace(_ token: Token) throws(StoreTrouble) {
    try changing { users throws(StoreTrouble) in
      guard let folder = try folder(Store.tokens),
        try folder.has(Path(token.serial.fileName))
      else { throw .unsettled(path: (root / Store.tokens / Path(token.serial.fileName)).text) }
      try users.put(try text(of: token), as: Path(token.serial.fileName), in: folder)
    }
  }

  /// Removes and overwrites tokens. Those that are not there are left out. Where somebody has one
  /// of them by now, removes none and returns that. A file that is broken may have lost the line
  /// that says who has its token: it goes if it is `unchecked`, else throws what is wrong with it.
  package func forget(_ serials: some Collection<TokenSerial>, unchecked: Bool = false)
    throws(StoreTrouble) -> Token?
  {
    try changing { users throws(StoreTrouble) in
      guard let folder = try folder(Store.tokens) else { return nil }
      for serial in serials {
        do throws(StoreTrouble) {
          if let token = try folder.token(Path(serial.fileName)), token.holder != nil {
            return token
          }
        } catch {
          guard unchecked, case .malformed = error else { throw error }
        }
      }
      // Out of the inventory first: half overwritten, it would stay there as a broken one.
      var gone: [Path] = []
      defer { for file in gone { users.erase(file) } }
      for serial in serials where try folder.has(Path(serial.fileName)) {
        let file = Leftover.named(Leftover.unfinished, hexadecimal(try Random.identifier()))
        try folder.rename(Path(serial.fileName), to: file, in: users)
        gone.append(file)
      }
      try folder.sync()
      return nil
    }
  }

  private func text(of token: Token) throws(StoreTrouble) -> Secret {
    guard let text = token.written() else { throw .outOfMemory }
    return text
  }
}

extension StoreFolder {
  /// nil if there is no such file.
  fileprivate func token(_ file: Path) throws(StoreTrouble) -> Token? {
    guard let text = try text(of: file) else { return nil }
    let token: Token
    do throws(SettingsError) {
      token = try Token.read(text)
    } catch {
      throw .malformed(path: (path / file).text, error)
    }
    guard same(token.serial.fileName, file.bytes) else {
      throw .malformed(
        path: (path / file).text,
        SettingsError(line: 1, .value("serial", wanted: "the name of the file")))
    }
    return token
  }

  /// Puts a file of this directory into another one, in the place of what has the name.
  fileprivate func rename(_ file: Path, to name: Path, in target: borrowing StoreFolder)
    throws(StoreTrouble)
  {
    // SAFETY: the C strings live for the call.
    let result = unsafe sys_rename(number, file.cString, target.number, name.cString)
    try check(result, "rename", target.path / name)
  }
}

extension Token {
  /// Where the record of the holder cannot be had, or another machine has the same inventory: what
  /// may have been used by now counts as used. Who holds it stays.
  package func distrusted(at now: UnixTime) -> Token {
    guard let name = UserName(bytes(of: "token")) else { return self }
    let alone = Enrollment(
      id: 1, user: name, uid: nil, created: authenticator.created,
      authenticators: [authenticator], backupCodes: nil)
    var state = LoginState(initialFor: alone)
    state.distrustCopy(of: alone, at: now)
    guard let values = state.authenticators.first, let last = values.lastAccepted else {
      return self
    }
    var token = with(lastAccepted: last, clock: values.clock)
    token.holder = holder
    return token
  }
}
