internal import CSystem
package import OneTimePassword
package import SallyportCore

/// Everything that can go wrong with the machine or the store: facts, no sentences, no secrets.
package indirect enum StoreTrouble: Error {
  /// A system call failed. `path` is what it was about: a file, or a login name for `getpwnam`.
  case system(StaticString, path: String, errno: Int32)
  /// The store's directory, or `users` or `decoy` in it, does not exist.
  case noStore(path: String)
  /// A file or directory that somebody else could have made, could change, or that is no such
  /// thing.
  case unsafe(path: String, Flaw)
  /// This file, the enrollment or the state, is missing in a user's directory.
  case incomplete(path: String)
  case malformed(path: String, SettingsError)
  case state(path: String, StateRecord.Problem)
  /// The state names another enrollment.
  case foreignState(path: String)
  /// The enrollment in this user's directory is another user's.
  case otherUser(path: String, found: UserName)
  /// The account has another uid (nil: there is no account) than when it was enrolled.
  case otherUID(path: String, recorded: UInt32, found: UInt32?)
  /// A lock was not had in time.
  case busy(path: String)
  /// The files were exchanged each time we looked, or an exchange stopped half-way.
  case unsettled(path: String)
  case exists(path: String)
  /// The service, whose socket this is, did not do what it was asked.
  case service(path: String, ServiceFault)
  case crypto(CryptoError)
  case outOfMemory

  /// What is wrong with a file or directory.
  package enum Flaw: Equatable, Sendable {
    case symbolicLink
    case notADirectory
    case notRegular
    case owner(UInt32, wanted: UInt32)
    /// The permission bits.
    case mode(UInt32)
    /// How many names the file has, where it may have one.
    case links(UInt64)
    /// Longer than 64 KiB.
    case tooLong
  }

  /// What is wrong with the service. Whether it has done what it was asked is not known.
  package enum ServiceFault: Equatable, Sendable {
    /// Nobody listens there.
    case absent
    /// It does not do that on this socket, or not for this caller.
    case notServed
    /// A file, directory or link is where its socket should be.
    case notASocket
    /// Somebody else listens there, with this effective uid.
    case notRoot(UInt32)
    /// More ask it than it lets wait.
    case busy
    /// It closed the connection without an answer, or did not answer in time.
    case silent
    /// It began, and no answer came.
    case unknown
    /// It gave an answer that cannot be read.
    case garbage
    /// It answered that it has trouble, which its log names.
    case trouble(mayBeTheCallers: Bool)
  }
}

extension StoreTrouble: Equatable {
  package static func == (a: StoreTrouble, b: StoreTrouble) -> Bool {
    a.kind == b.kind && same(a.path, b.path) && a.hasFacts(of: b)
  }

  /// What it is about; empty where there is no file to name.
  package var path: String {
    switch self {
    case .system(_, let path, _), .noStore(let path), .unsafe(let path, _),
      .incomplete(let path), .malformed(let path, _), .state(let path, _),
      .foreignState(let path), .otherUser(let path, _), .otherUID(let path, _, _),
      .busy(let path), .unsettled(let path), .exists(let path), .service(let path, _):
      return path
    case .crypto, .outOfMemory: return ""
    }
  }

  /// Whether anybody can bring it about who may start a login: by holding the lock, or, as the
  /// caller of su, by the limits that the process inherits.
  package var mayBeTheCallers: Bool {
    switch self {
    case .busy, .outOfMemory, .crypto(.outOfMemory), .service(_, .busy), .service(_, .silent),
      .service(_, .unknown):
      true
    case .service(_, .trouble(let mayBeTheCallers)): mayBeTheCallers
    case .system(_, _, let number):
      number == EMFILE || number == ENFILE || number == ENOMEM || number == EFBIG
    case .noStore, .unsafe, .incomplete, .malformed, .state, .foreignState, .otherUser, .otherUID,
      .unsettled, .exists, .crypto, .service(_, .absent), .service(_, .notServed),
      .service(_, .notASocket), .service(_, .notRoot),
      .service(_, .garbage):
      false
    }
  }

  /// As `path`.
  package var pathBytes: [UInt8] { bytes(of: path) }

  private var kind: Int {
    switch self {
    case .system: 0
    case .noStore: 1
    case .unsafe: 2
    case .incomplete: 3
    case .malformed: 4
    case .state: 5
    case .foreignState: 6
    case .otherUser: 7
    case .otherUID: 8
    case .busy: 9
    case .unsettled: 10
    case .exists: 11
    case .crypto: 12
    case .outOfMemory: 13
    case .service: 14
    }
  }

  /// Whether what stands beside the path is equal, in troubles of one kind.
  private func hasFacts(of other: StoreTrouble) -> Bool {
    if case .system(let call, _, let errno) = self, case .system(let call2, _, let errno2) = other {
      return same(call, call2) && errno == errno2
    }
    if case .unsafe(_, let flaw) = self, case .unsafe(_, let flaw2) = other { return flaw == flaw2 }
    if case .malformed(_, let error) = self, case .malformed(_, let error2) = other {
      return error == error2
    }
    if case .state(_, let problem) = self, case .state(_, let problem2) = other {
      return problem == problem2
    }
    if case .otherUser(_, let found) = self, case .otherUser(_, let found2) = other {
      return found == found2
    }
    if case .otherUID(_, let uid, let found) = self,
      case .otherUID(_, let uid2, let found2) = other
    {
      return uid == uid2 && found == found2
    }
    if case .service(_, let fault) = self, case .service(_, let fault2) = other {
      return fault == fault2
    }
    if case .crypto(let error) = self, case .crypto(let error2) = other { return error == error2 }
    return true
  }
}

// Paths are compared as bytes: `String` would take canonically equivalent spellings for equal.
private func same(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }

private func same(_ a: StaticString, _ b: StaticString) -> Bool {
  a.withUTF8Buffer { a in b.withUTF8Buffer { b in unsafe a.elementsEqual(b) } }
}
