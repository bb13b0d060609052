internal import CSystem

/// An open file or directory, which is closed at the end of the value's life.
struct Descriptor: ~Copyable {
  let number: Int32
  /// What fstat(2) returned when it was opened.
  let facts: sys_facts

  /// Opens `path`, relative to `directory`. Never follows a symbolic link at the end of the path,
  /// and never blocks.
  init(_ path: Path, _ how: Int32, in directory: Int32 = AT_FDCWD) throws(Errno) {
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

/// The errno of a failed system call.
struct Errno: Error, Equatable {
  let code: Int32

  /// Throws if the result of a shim is a negative errno.
  @discardableResult
  static func check(_ result: Int32) throws(Errno) -> Int32 {
    if result < 0 { throw Errno(code: 0 - result) }
    return result
  }
}

/// Throws an error with `path` if the result of a shim is a negative errno.
@discardableResult @inline(never)
func check(_ result: Int64, _ call: StaticString, _ path: Path) throws(StoreTrouble) -> Int64 {
  if result < 0 { throw path.trouble(call, Int32(clamping: 0 - result)) }
  return result
}

/// As above.
@discardableResult @inline(never)
package func check(_ result: Int32, _ call: StaticString, _ path: Path) throws(StoreTrouble)
  -> Int32
{
  if result < 0 { throw path.trouble(call, 0 - result) }
  return result
}

/// stat(2) of `path`, relative to `directory`; a symbolic link is not followed.
func facts(at path: Path, in directory: Int32 = AT_FDCWD) throws(Errno) -> sys_facts {
  var facts = sys_facts()
  // SAFETY: the C string lives for the call, in which the facts are filled.
  try Errno.check(unsafe sys_facts_at(directory, path.cString, &facts))
  return facts
}

/// As above, but nil if there is no such file. `path` is for the error.
@inline(never)
func found(_ name: Path, in directory: Int32, _ path: @autoclosure () -> Path)
  throws(StoreTrouble) -> sys_facts?
{
  do throws(Errno) {
    return try facts(at: name, in: directory)
  } catch {
    if error.code == ENOENT { return nil }
    throw path().trouble("lstat", error.code)
  }
}

/// Identifies a file or directory, whatever its name is.
struct Identity: Equatable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ facts: sys_facts) { (device, inode) = (facts.device, facts.inode) }
}

/// Identifies the content of a file. Our own changes always make a new inode; the times show those
/// of others.
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
