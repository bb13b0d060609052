internal import CSystem
package import OneTimePassword
package import SallyportCore

/// The enrollments and login states of one machine (docs/enrollment-format.md):
/// `users/NAME/enrollment` and `users/NAME/state`, and the same two files of the decoy in `decoy`.
package final class Store: Sendable {
  package static let usualRoot = "/var/lib/sallyport"

  /// Who must own the files and all directories above them.
  package enum Owner: Sendable {
    case root
    /// Root or the effective user; only for a store other than the usual one.
    case effectiveUser
  }

  /// Reads the text of an enrollment's file.
  package typealias Reading = (Secret) throws(SettingsError) -> Enrollment

  /// How the files of a store tell what is enrolled.
  package struct Format: Sendable {
    package let read: @Sendable (Secret) throws(SettingsError) -> Enrollment
    /// nil for what has no place in such a store, or if memory is short.
    let written: @Sendable (Enrollment) -> Secret?

    package init(
      read: @escaping @Sendable (Secret) throws(SettingsError) -> Enrollment,
      written: @escaping @Sendable (Enrollment) -> Secret?
    ) {
      (self.read, self.written) = (read, written)
    }

    static var ordinary: Format {
      Format(
        read: { text throws(SettingsError) in try Enrollment.read(text) },
        written: { $0.written() })
    }
  }

  package let root: Path
  let checks: Checks
  let timeout: LockTimeout
  /// Whether to exchange two directories at once, if the file system supports that.
  package let exchanges: Bool
  package let format: Format

  /// `root` is an absolute path without `..`. Nothing is read before the store is used.
  package convenience init(root: String = usualRoot, owner: Owner = .root) {
    self.init(root: root, owner: owner, timeout: .usual, exchanges: true)
  }

  /// As above, with the path as bytes.
  package convenience init(root: [UInt8], owner: Owner) {
    self.init(root: root, owner: owner, timeout: .usual, exchanges: true, .ordinary)
  }

  /// A store with files of another format.
  package convenience init(root: String, owner: Owner, _ format: Format) {
    self.init(root: bytes(of: root), owner: owner, timeout: .usual, exchanges: true, format)
  }

  convenience init(root: String, owner: Owner, timeout: LockTimeout, exchanges: Bool) {
    self.init(
      root: bytes(of: root), owner: owner, timeout: timeout, exchanges: exchanges, .ordinary)
  }

  private init(
    root: [UInt8], owner: Owner, timeout: LockTimeout, exchanges: Bool, _ format: Format
  ) {
    self.root = Store.withoutTrailingSlashes(root)
    checks = Checks(owner)
    self.timeout = timeout
    self.exchanges = exchanges
    self.format = format
  }

  private static func withoutTrailingSlashes(_ path: [UInt8]) -> Path {
    var bytes = path
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return Path(bytes)
  }

  /// How often a login starts over if its files were exchanged while it waited for their lock.
  static let attempts = 3
  /// How often to read files again that are being exchanged; each time takes a few microseconds.
  static let readings = 20

  /// Whether root cannot write it from this process: the disk is read-only, or the process has a
  /// mount of its own, as by `ProtectSystem=strict`.
  package var isReadOnly: Bool { unsafe sys_is_read_only(root.cString) != 0 }

  package var users: Path { root / "users" }
  var decoy: UserDirectory { decoy(for: []) }

  func decoy(for name: [UInt8]) -> UserDirectory {
    UserDirectory(parent: root, name: "decoy", decoyName: name)
  }

  /// The directory of `name`. Throws `crypto` for a long name that cannot be hashed.
  func location(of name: UserName) throws(StoreTrouble) -> UserDirectory {
    let file: [UInt8]
    if let plain = name.fileName {
      file = plain
    } else {
      file = UserName.hashedFileName(sha256: try Store.digest(of: name.bytes))
    }
    return UserDirectory(parent: users, name: Path(file))
  }

  /// The name of this user's directory, and of the file of his note.
  package func fileName(of name: UserName) throws(StoreTrouble) -> Path {
    try location(of: name).name
  }

  static func digest(of name: [UInt8]) throws(StoreTrouble) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest(name)
    } catch {
      throw .crypto(error)
    }
  }
}

/// An enrollment and its login state as they were read, and the files that they were read from.
package final class Record: Sendable {
  package let enrollment: Enrollment
  package var state: LoginState { current.state }
  /// The user's directory.
  package var path: String { location.path.text }
  package var isDecoy: Bool { location.isDecoy }
  /// Whether a later state may have been lost.
  package var mayLackTheLatest: Bool { current.record?.mayLackTheLatest == true }
  /// Whether it is in the files of this machine and has no uid: it was made without an account, and
  /// every account that ever has the name is asked for its codes.
  package var isOfAnyUID: Bool { enrollment.uid == nil && current.record != nil }

  let current: CurrentState
  let location: UserDirectory
  let directory: Identity
  let version: Version

  init(
    enrollment: Enrollment, current: CurrentState, location: UserDirectory, directory: Identity,
    version: Version
  ) {
    self.enrollment = enrollment
    self.current = current
    self.location = location
    self.directory = directory
    self.version = version
  }
}

extension Record {
  /// Of a store that has no files. `path` names it in messages; `kept`: whatever that store knows
  /// it by.
  package convenience init(
    enrollment: Enrollment, state: LoginState, path: String, kept: [UInt8], decoyOf: [UInt8]?
  ) {
    let none = sys_facts()
    self.init(
      enrollment: enrollment, current: CurrentState(bytes: kept, state: state, record: nil),
      location: UserDirectory(parent: "/", name: Path(bytes(of: path)), decoyName: decoyOf),
      directory: Identity(none), version: Version(none))
  }

  /// As it was given.
  package var kept: [UInt8] { current.bytes }
  /// For whom it is the decoy; nil for a user's own record.
  package var decoyOf: [UInt8]? { location.decoyName }
}

/// The result of an attempt to change a record.
package enum Transaction<Verdict> {
  case committed(Verdict)
  /// The enrollment is not the one that was loaded; nothing was written. Load it again.
  case changed
}
