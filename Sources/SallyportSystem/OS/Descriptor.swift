internal import CSystem

/// An open file or directory; closed when the value goes.
struct Descriptor: ~Copyable {
  let number: Int32
  /// What kind of file it was when it was opened, whose, and which.
  let facts: sys_facts

  /// Opens `path`, in `directory` where it is relative; never follows a link at its end, never
  /// blocks.
  init(_ path: Path, _ how: Int32, in directory: Int32 = sys_here) throws(Errno) {
    var facts = sys_facts()
    // SAFETY: the C string lives for the call.
    let number = try Errno.check(unsafe sys_open(directory, path.cString, how))
    // SAFETY: filled within the call.
    let result = unsafe sys_facts_of(number, &facts)
    if result < 0 { sys_close(number) }
    try Errno.check(result)
    (self.number, self.facts) = (number, facts)
  }

  @inline(never) deinit { sys_close(number) }
}

/// The reason of a failed system call.
struct Errno: Error, Equatable {
  let code: Int32

  /// The result of a shim, which is a negative errno on failure.
  @discardableResult
  static func check(_ result: Int32) throws(Errno) -> Int32 {
    if result < 0 { throw Errno(code: 0 - result) }
    return result
  }
}

/// The result of a shim, with its failure reported as an error with `path`.
@discardableResult @inline(never)
func check(_ result: Int64, _ call: StaticString, _ path: Path) throws(StoreTrouble) -> Int64 {
  if result < 0 { throw path.trouble(call, Int32(clamping: 0 - result)) }
  return result
}

/// As above.
@discardableResult @inline(never)
func check(_ result: Int32, _ call: StaticString, _ path: Path) throws(StoreTrouble) -> Int32 {
  if result < 0 { throw path.trouble(call, 0 - result) }
  return result
}

/// What `path` itself is, in `directory` where it is relative; a link is not followed.
func facts(at path: Path, in directory: Int32 = sys_here) throws(Errno) -> sys_facts {
  var facts = sys_facts()
  // SAFETY: the C string lives for the call, in which the facts are filled.
  try Errno.check(unsafe sys_facts_at(directory, path.cString, &facts))
  return facts
}

/// As above; nil where there is nothing of that name. `path` is for the error.
@inline(never)
func found(_ name: Path, in directory: Int32, _ path: @autoclosure () -> Path)
  throws(StoreTrouble) -> sys_facts?
{
  do throws(Errno) {
    return try facts(at: name, in: directory)
  } catch {
    if error.code == sys_ENOENT { return nil }
    throw path().trouble("lstat", error.code)
  }
}

/// Which file or directory something is, however it is called.
struct Identity: Equatable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ facts: sys_facts) { (device, inode) = (facts.device, facts.inode) }
}

/// Which content a file has. Our own changes always make a new inode; the times tell of others'.
struct Version: Equatable, Sendable {
  let identity: Identity
  let size: UInt64
  let modified: Int64
  let changed: Int64
  let nanoseconds: UInt64

  init(_ facts: sys_facts) {
    identity = Identity(facts)
    size = facts.size
    (modified, changed) = (facts.modified, facts.changed)
    nanoseconds = UInt64(facts.modified_nanoseconds) << 32 | UInt64(facts.changed_nanoseconds)
  }
}
