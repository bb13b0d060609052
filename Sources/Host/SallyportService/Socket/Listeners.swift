import CService
import Glibc
package import SallyportSupport

/// A socket that listens.
package final class Listener: Sendable {
  let descriptor: Int32
  let path: String
  /// Made here, and so removed here; not by our parent, which keeps it for the next start.
  let isOurs: Bool
  /// Held as long as this lives.
  private let lock: Int32

  init(_ descriptor: Int32, _ path: String, lock: Int32 = -1) {
    (self.descriptor, self.path, self.lock, isOurs) = (descriptor, path, lock, lock >= 0)
  }

  /// Nobody finds it any more.
  func remove() {
    // SAFETY: the C string lives for the call.
    if isOurs { _ = unsafe unlink(path) }
  }

  deinit {
    close(descriptor)
    if lock >= 0 { close(lock) }
  }
}

/// The two sockets of the service.
package struct Listeners {
  /// nil: not served.
  package var root: Listener?
  package var everybody: Listener?

  package static let rootPath = "/run/sallyport/root"
  package static let everybodysPath = "/run/sallyport/socket"

  private static let backlog: Int32 = 1024
  private static let firstDescriptor: Int32 = 3

  /// Those that were passed by systemd or another supervisor (sd_listen_fds(3)): LISTEN_FDS, meant
  /// for the process LISTEN_PID. They are known by their paths; one alone will do. nil where none
  /// were passed. Call it once, before other descriptors are opened.
  package static func passed(root: String, everybody: String) throws(ServiceError) -> Listeners? {
    guard let passed = try passed(at: [root, everybody]) else { return nil }
    return Listeners(
      root: passed.first { $0.path == root }, everybody: passed.first { $0.path == everybody })
  }

  /// The same for the one socket of sessions.
  package static func passed(forSessions path: String) throws(ServiceError) -> Listener? {
    try passed(at: [path])?.first
  }

  private static func passed(at paths: [String]) throws(ServiceError) -> [Listener]? {
    guard number(in: "LISTEN_PID") == getpid(), let count = number(in: "LISTEN_FDS"), count > 0
    else { return nil }
    // SAFETY: there is one thread. No program that is started later takes them for its own.
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { _ = unsafe unsetenv(name) }
    var listeners: [Listener] = []
    for descriptor in firstDescriptor..<firstDescriptor + min(count, 16) {
      let listener = try adopt(descriptor)
      guard paths.contains(listener.path) else { throw .unknownDescriptor(descriptor) }
      listeners.append(listener)
    }
    return listeners
  }

  private static func adopt(_ descriptor: Int32) throws(ServiceError) -> Listener {
    var path = [CChar](repeating: 0, count: 128)
    // SAFETY: the buffer has its size.
    guard unsafe service_adopt(descriptor, &path, path.count) == 0 else {
      throw .unknownDescriptor(descriptor)
    }
    try ServiceError.check(service_pass_credentials(descriptor), "setsockopt")
    let bytes = path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return Listener(descriptor, String(decoding: bytes, as: UTF8.self))
  }

  private static func number(in variable: String) -> Int32? {
    // SAFETY: there is one thread, and the text is copied.
    unsafe getenv(variable).flatMap { unsafe Int32(String(cString: $0)) }
  }

  /// Sockets of our own at these paths, in the place of what a service left behind that was killed.
  package static func open(root: String, everybody: String) throws(ServiceError) -> Listeners {
    try Listeners(root: open(root, mode: 0o600), everybody: open(everybody, mode: 0o666))
  }

  /// One for root's programs alone, as above.
  package static func open(root: String) throws(ServiceError) -> Listeners {
    Listeners(root: try open(root, mode: 0o600), everybody: nil)
  }

  /// The one of sessions, as above.
  package static func open(forSessions path: String) throws(ServiceError) -> Listener {
    try open(path, mode: 0o666)
  }

  /// The lock is held until the service ends: of two that start at once only one goes on.
  static func open(_ path: String, mode: mode_t) throws(ServiceError) -> Listener {
    try makeDirectory(of: path)
    // SAFETY: the C string lives for the call; so for the calls below.
    let held = unsafe service_lock(path + ".lock")
    if held == -EAGAIN { throw .inUse(path: path) }
    let lock = try ServiceError.check(held, "open", path + ".lock")
    do throws(ServiceError) {
      try removeStale(path)
      let descriptor = try ServiceError.check(unsafe service_bind(path, mode), "bind", path)
      let listener = Listener(descriptor, path, lock: lock)
      try ServiceError.check(service_pass_credentials(descriptor), "setsockopt")
      try ServiceError.check(service_listen(descriptor, backlog), "listen", path)
      return listener
    } catch {
      close(lock)
      throw error
    }
  }

  private static func makeDirectory(of path: String) throws(ServiceError) {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    let directory = String(path[..<end])
    // SAFETY: the C string lives for the call.
    if unsafe mkdir(directory, 0o755) != 0, errno != EEXIST {
      throw .system("mkdir", path: directory, errno: errno)
    }
    let found = try facts(of: directory)
    guard found.st_mode & S_IFMT == S_IFDIR, found.st_uid == geteuid(), found.st_mode & 0o022 == 0
    else { throw .notOurs(path: directory) }
  }

  /// A socket on which nobody listens is what a service left that was killed.
  private static func removeStale(_ path: String) throws(ServiceError) {
    do throws(ServiceError) {
      guard try facts(of: path).st_mode & S_IFMT == S_IFSOCK else { throw .notOurs(path: path) }
    } catch {
      if case .system(_, _, errno: ENOENT) = error { return }
      throw error
    }
    // SAFETY: the C strings live for the calls.
    guard unsafe service_try(path) == -ECONNREFUSED else { throw .inUse(path: path) }
    if unsafe unlink(path) != 0 { throw .system("unlink", path: path, errno: errno) }
  }

  private static func facts(of path: String) throws(ServiceError) -> stat {
    var found = stat()
    // SAFETY: filled within the call.
    if unsafe lstat(path, &found) != 0 { throw .system("lstat", path: path, errno: errno) }
    return found
  }
}
