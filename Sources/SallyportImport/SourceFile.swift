import CSystem
package import OneTimePassword
import SallyportCore
import SallyportSystem

/// A file of another module, read once, never changed.
package struct SourceFile {
  package let bytes: Secret
  let owner: UInt32
  /// Permission bits.
  package let mode: UInt32

  /// Bytes of the longest list that is read: some ten million users.
  package static let longestList = 1 << 30

  /// Reads what a name on the command line leads to; `-` is standard input. Not through a link,
  /// and regular, but for standard input.
  package init(_ path: String, longest: Int) throws(FileProblem) {
    var source = source()
    // SAFETY: the C string lives for the call, in which the facts are filled.
    let descriptor = unsafe source_open(path, &source)
    if descriptor == -ELOOP { throw .symbolicLink }
    guard descriptor >= 0 else { throw .cannotRead(errno: -descriptor) }
    defer { source_close(descriptor) }
    guard source.regular || path == "-" else { throw .notRegular }
    bytes = try SourceFile.read(descriptor, expecting: Int(clamping: source.size), longest)
    (owner, mode) = (source.owner, source.mode)
  }

  /// Reads a file in a user's reach with that user's rights alone, so that no link on the way leads
  /// to what only root can read. Then it must be the user's or root's, and no one else's to read.
  package init(_ path: String, of user: UInt32, _ group: UInt32, longest: Int) throws(FileProblem) {
    var before = unsafe file_rights()
    let mayChange = process_effective_user() == 0 && user != 0
    if mayChange {
      // SAFETY: filled within the call.
      let problem = unsafe rights_take(user, group, &before)
      if problem != 0 { throw .cannotRead(errno: problem) }
    }
    // SAFETY: what was filled above.
    defer { if mayChange { unsafe rights_put_back(&before) } }
    try self.init(path, longest: longest)
    guard owner == user || owner == 0 else { throw .owner(owner, wanted: user) }
    guard mode & 0o077 == 0 else { throw .openToOthers(mode: mode) }
  }

  private static func read(_ descriptor: Int32, expecting size: Int, _ longest: Int)
    throws(FileProblem) -> Secret
  {
    if size > longest { throw .tooLong(most: longest) }
    // One byte more than expected tells whether there is more.
    var capacity = max(size, 65536) + 1
    var whole = Secret(count: 0)
    while let soFar = whole {
      guard let next = Secret(count: capacity) else { throw .cannotRead(errno: ENOMEM) }
      // SAFETY: what is copied fits, and what is read fits behind it; all live for the call.
      let got = unsafe next.withMutableBytes { target in
        unsafe soFar.withBytes { unsafe target.copyMemory(from: $0) }
        guard let base = target.baseAddress else { return Int64(0) }
        return unsafe source_read(descriptor, base + soFar.count, capacity - soFar.count)
      }
      if got < 0 { throw .cannotRead(errno: Int32(clamping: -got)) }
      let count = soFar.count + Int(got)
      if count > longest { throw .tooLong(most: longest) }
      whole = next.slice(0..<count)
      if count < capacity { break }
      capacity = min(capacity * 4, longest + 1)
    }
    guard let whole else { throw .cannotRead(errno: ENOMEM) }
    return whole
  }
}
