import CCommand
import CSystem
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// A store and its file system.
struct StoreFacts {
  var path = Store.usualRoot
  /// Why the directories of users could not be listed.
  var error: StoreTrouble?
  var decoyError: StoreTrouble?
  /// The store's directory, its `users` and, where there are any, its `acts`, `helpdesk` and
  /// `tokens`.
  var directories: [String: FileFacts] = [:]
  /// Paths of files that a crash left behind: they belong to no user and are older than a minute.
  var leftovers: [String] = []
  var disk: Probe<DiskFacts> = .absent
  /// nil if SELinux is off or has nothing against it.
  var label: StoreLabel?
  var writing = WriteTest.works
  var users: [UserFacts] = []
  /// Whether a name that is not found has no account: all accounts are in files of this machine.
  var knowsAllAccounts = true
  /// The notes of users.
  var notes: [NoteFacts] = []
  /// Why no note can be read.
  var notesError: StoreTrouble?
  /// What this machine tells otherwise than the one that the store was made on; nil: unknown.
  var otherMachine: [MachineMark.Part]?
  /// Whom `prepare --new-machine` could not change: the names of directories.
  var notTakenOver: [String] = []
  /// Why the mark of the machine cannot be read.
  var markError: StoreTrouble?
  /// Why a token of the inventory cannot be read: the first one.
  var tokenError: StoreTrouble?
  var tokens = 0
  /// Whether the caller may not read the store.
  var isClosed = false

  /// Users with an enrollment that can be read.
  var enrolled: Set<String> { Set(users.filter { $0.error == nil }.compactMap(\.name)) }

  /// Those of them who have an account.
  var peopleEnrolled: [String] {
    users.filter { $0.error == nil && !$0.isForNobody }.compactMap(\.name)
  }
}

/// The result of creating and changing a file as a login does.
enum WriteTest: Equatable {
  case works
  case fails(Step, errno: Int32)

  enum Step: Equatable { case make, fill, lock, change, read }
}

/// One enrollment.
struct UserFacts {
  /// The name of its directory.
  let directory: String
  /// The login name; nil if unknown.
  let name: String?
  /// Of this name; nil if it was not looked for.
  var account: Account?
  /// Of the account that it was made for; nil: any.
  var uid: UInt32?
  /// The account that has its uid under another name, where none has its own name; nil if there is
  /// none, or it is enrolled itself.
  var holder: (name: String, uid: UInt32)?
  /// Why its logins fail; nil if they do not.
  var error: StoreTrouble?
  /// Whether no account has this name, and none had when the enrollment was made.
  var isForNobody = false
  /// If the last accepted step is ahead of the clock: the time from which codes are accepted again.
  var aheadUntil: UnixTime?
  /// That is not later than `prepare --new-machine` makes it.
  var isPaused = false
  var backupCodesLeft = 0
  /// Seconds until the next code is checked, from known and from other origins; 0 for now, nil for
  /// never.
  var waits: (known: UInt64?, other: UInt64?) = (0, 0)
  var usesCounters = false
  /// The authenticators whose counter waits for `resync`.
  var heldCounters: [String] = []
  var factors = Factors()
  /// nil if it was never used, or only long ago.
  var lastUse: UnixTime?
  var state = FileFacts()
  /// On btrfs: whether the state is written in place.
  var isInPlace: Bool?
}

extension StoreFacts {
  /// `accounts` spare questions to the name service.
  init(
    of machine: Machine, _ store: Store, at path: String,
    among accounts: AccountFacts = AccountFacts(), _ now: UnixTime
  ) {
    self.path = path
    knowsAllAccounts = NameSources(of: "passwd", on: machine).areFiles
    for directory in [path, "\(path)/users", "\(path)/acts", "\(path)/helpdesk", "\(path)/tokens"] {
      directories[directory] = machine.file(directory).value
    }
    disk = machine.disk(path)
    label = StoreLabel(of: machine, in: path)
    do throws(StoreTrouble) {
      let policy = CommandPolicy(of: machine, store, accounts)
      users = try users(in: store, of: machine, under: policy, now)
      leftovers = StoreFacts.leftovers(of: machine, in: path, now)
      writing = StoreFacts.writing(in: path)
      (notes, notesError) = StoreFacts.notes(of: machine, store, in: path, at: now)
    } catch {
      self.error = error
    }
    do throws(StoreTrouble) {
      notTakenOver = try store.machineMark()?.left ?? []
      otherMachine = try machine.difference(from: store)
    } catch {
      markError = error
    }
    readTokens(in: store)
    do throws(StoreTrouble) {
      _ = try store.loadDecoy(for: [])
    } catch {
      decoyError = error
    }
  }

  private mutating func readTokens(in store: Store) {
    var (count, trouble) = (0, StoreTrouble?.none)
    do throws(StoreTrouble) {
      try store.eachToken { _, read in
        count += 1
        if case .failure(let error) = read { trouble = trouble ?? error }
      }
    } catch {
      trouble = error
    }
    (tokens, tokenError) = (count, trouble)
  }

  func users(
    in store: Store, of machine: Machine, under policy: CommandPolicy, _ now: UnixTime
  ) throws(StoreTrouble) -> [UserFacts] {
    let names = try store.enrolledNames()
    var (book, users) = (AccountBook(), [UserFacts]())
    // Where they cannot be listed, each is looked up.
    if let listed = try? AccountBook(forNames: names.count) { book = listed }
    let enrolled = Set(names.compactMap(\.user?.bytes))
    try store.load(all: names) { stored, record in
      users.append(
        UserFacts(
          stored, holding: record, in: store, self, of: machine, &book, under: policy, at: now))
      users[users.count - 1].look(forHolderBesides: enrolled)
    }
    return users
  }

  /// Files of commands that are running now are younger.
  private static func leftovers(of machine: Machine, in path: String, _ now: UnixTime) -> [String] {
    let patterns = [".tmp-*", ".gone-*", ".new-*", ".moving-*"].flatMap {
      ["\(path)/\($0)", "\(path)/users/\($0)"]
    }
    return patterns.flatMap { machine.paths($0) }.filter { file in
      let age: Int64 = file.contains("/.new-") ? 660 : 60
      return (machine.file(file, following: false).value?.modified ?? 0) < now.seconds - age
    }
  }

  private static func writing(in path: String) -> WriteTest {
    // If this process is killed here, the next command removes files with such a name.
    let name = "\(path)/.tmp-doctor-\(getpid())"
    // SAFETY: the C string lives for the call.
    let file = unsafe sys_open(AT_FDCWD, name, sys_as_new_file)
    if file < 0 { return .fails(.make, errno: -file) }
    defer {
      sys_close(file)
      removeFile(name)
    }
    return changing(file)
  }

  /// Fills a new file to the size of a login state, and changes it in place as a login does.
  private static func changing(_ file: Int32) -> WriteTest {
    let size = 4096
    var page = [UInt8](repeating: 0, count: size)
    // SAFETY: in all these calls the buffers have as many bytes as are passed.
    for offset: UInt64 in [0, 4096] {
      let done = unsafe sys_write(file, page, size, offset)
      if done != size { return .fails(.fill, errno: reason(done)) }
    }
    let synced = sys_sync(file)
    if synced < 0 { return .fails(.fill, errno: -synced) }
    let locked = sys_lock(file, F_WRLCK, 0, 0)
    if locked < 0 { return .fails(.lock, errno: -locked) }
    let changed = [UInt8](repeating: 0x5a, count: size)
    let done = unsafe sys_write(file, changed, size, 4096)
    if done != size { return .fails(.change, errno: reason(done)) }
    let saved = sys_sync_data(file)
    if saved < 0 { return .fails(.change, errno: -saved) }
    let got = unsafe sys_read(file, &page, size, 4096)
    if got != size { return .fails(.read, errno: reason(got)) }
    return page == changed ? .works : .fails(.read, errno: EIO)
  }

  /// Why a call failed, or wrote only a part.
  private static func reason(_ result: Int64) -> Int32 {
    result < 0 ? Int32(clamping: -result) : EIO
  }
}

extension UserFacts {
  init(
    _ stored: StoredName, holding record: Result<Record?, StoreTrouble>, in store: Store,
    _ facts: StoreFacts, of machine: Machine, _ book: inout AccountBook,
    under policy: CommandPolicy, at now: UnixTime
  ) {
    directory = "\(facts.path)/users/\(stored.directory)"
    var name = stored.user.map { String(decoding: $0.bytes, as: UTF8.self) }
    var (found, account): (Record?, Account?)
    do throws(StoreTrouble) {
      found = try record.get()
      if let record = found {
        name = String(decoding: record.enrollment.user.bytes, as: UTF8.self)
        let there = try book.find(record.enrollment.user)
        account = there
        if there.uid == nil, record.enrollment.uid == nil { isForNobody = true }
        try store.verify(record, of: there)
      }
    } catch {
      self.error = error
    }
    (self.name, self.account) = (name, account)
    if let found {
      uid = found.enrollment.uid
      let account = account ?? Account(name: found.enrollment.user, uid: nil)
      take(found, under: policy.policy(for: account), now)
    }
    state = machine.file("\(directory)/state").value ?? FileFacts()
    if facts.disk.value?.type == DiskFacts.btrfs {
      isInPlace = isWrittenInPlace("\(directory)/state")
    }
  }

  /// An account that is found by a name of another form has its own name.
  fileprivate mutating func look(forHolderBesides enrolled: Set<[UInt8]>) {
    guard let uid, let account, account.uid == nil || account.uid == uid else {
      return
    }
    let found = account.uid == nil ? try? Accounts.find(uid: uid) : account
    guard let found, let own = found.name.typed, own != name,
      !enrolled.contains(found.name.bytes)
    else { return }
    holder = (own, uid)
  }

  private func isWrittenInPlace(_ path: String) -> Bool {
    do throws(SystemError) {
      let file = try OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      return inspect_no_copy_on_write(file.number) == 1
    } catch {
      return false
    }
  }

  private mutating func take(_ record: Record, under policy: Policy, _ now: UnixTime) {
    var state = record.state
    state.reconcile(with: record.enrollment)
    state.distrustFuture(now)
    factors = record.enrollment.factors
    let authenticators = record.enrollment.authenticators
    let throttle = Throttle(for: record.enrollment, state, under: policy)
    let digits = authenticators.map(\.parameters.digits)
    let dearest = digits.max { throttle.cost(of: $0) < throttle.cost(of: $1) } ?? .six
    waits = (
      throttle.wait(for: state.known, digits: dearest, at: now),
      throttle.wait(for: state.other, digits: dearest, at: now)
    )
    lastUse = state.lastUse?.time
    usesCounters = authenticators.contains { $0.parameters.type == .hotp }
    heldCounters = zip(authenticators, state.authenticators).compactMap { authenticator, values in
      authenticator.parameters.type == .hotp && HeldCounter.isHeld(values.lastAccepted)
        ? authenticator.name.text : nil
    }
    backupCodesLeft = record.enrollment.backupCodes?.left(state.backupCodes) ?? 0
    isPaused = true
    for (authenticator, values) in zip(authenticators, state.authenticators) {
      guard let until = authenticator.aheadOfClock(values, throttle, at: now) else {
        continue
      }
      aheadUntil = max(aheadUntil ?? until, until)
      isPaused = isPaused && authenticator.isPause(until: until, values, at: now)
    }
  }
}
