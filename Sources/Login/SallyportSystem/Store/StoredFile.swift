internal import CSystem
internal import OneTimePassword

/// An open file of a user's directory, which was checked.
struct StoredFile: ~Copyable {
  static let enrollment: Path = "enrollment"
  static let state: Path = "state"

  let descriptor: Descriptor
  let name: Path
  let location: UserDirectory

  var facts: sys_facts { descriptor.facts }
  @inline(never) var path: Path { location.path / name }

  /// Returns nil if the directory has no such file, or if it has just been removed.
  @inline(never)
  static func open(
    _ name: Path, _ how: Int32, in directory: borrowing OpenUserDirectory, _ checks: Checks
  ) throws(StoreTrouble) -> StoredFile? {
    let descriptor: Descriptor
    do throws(Errno) {
      descriptor = try Descriptor(name, how, in: directory.descriptor.number)
    } catch {
      if error.code == ENOENT { return nil }
      throw fileTrouble(
        error, name, in: directory.descriptor.number, directory.location.path / name)
    }
    if descriptor.facts.links == 0 { return nil }
    if let flaw = checks.flaw(ofFile: descriptor.facts) {
      throw .unsafe(path: (directory.location.path / name).text, flaw)
    }
    return StoredFile(descriptor: descriptor, name: name, location: directory.location)
  }

  /// As `check`, but builds the path only for an error.
  @discardableResult @inline(never)
  private func checked(_ result: Int64, _ call: StaticString) throws(StoreTrouble) -> Int64 {
    if result < 0 { throw path.trouble(call, Int32(clamping: 0 - result)) }
    return result
  }

  /// The whole content; nil if its length changes while it is read.
  func secret() throws(StoreTrouble) -> Secret? {
    guard let secret = Secret(count: Int(facts.size)) else { throw .outOfMemory }
    // SAFETY: the buffer lives for the call.
    let done = unsafe secret.withMutableBytes { buffer in
      unsafe StoredFile.read(descriptor.number, buffer)
    }
    guard try checked(Int64(done), "read") == secret.count else { return nil }
    return try isAtEnd(facts.size) ? secret : nil
  }

  /// The first `count` bytes, or fewer if the file is shorter.
  func bytes(_ count: Int) throws(StoreTrouble) -> [UInt8] {
    let descriptor = descriptor.number
    var result = 0
    // SAFETY: as many bytes are initialized as were read.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      result = unsafe StoredFile.read(descriptor, UnsafeMutableRawBufferPointer(buffer))
      initialized = max(result, 0)
    }
    try checked(Int64(result), "read")
    return bytes
  }

  private func isAtEnd(_ offset: UInt64) throws(StoreTrouble) -> Bool {
    var byte: UInt8 = 0
    // SAFETY: one byte, which lives for the call.
    let done = unsafe sys_read(descriptor.number, &byte, 1, offset)
    return try checked(done, "read") == 0
  }

  /// Reads until the buffer is full or the file ends. Returns the number of bytes, or a negative
  /// errno.
  @unsafe static func read(
    _ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    guard let base = buffer.baseAddress else { return 0 }
    var count = 0
    while count < buffer.count {
      // SAFETY: count < buffer.count, and at most the rest of the buffer is read.
      let done = unsafe sys_read(
        descriptor, base + count, buffer.count - count, UInt64(count))
      if done < 0 { return Int(done) }
      if done == 0 { break }
      count += Int(done)
    }
    return count
  }

  /// One pwrite(2) and one fdatasync(2), so that a crash leaves the old record or the new one.
  func save(_ page: [UInt8], at offset: Int) throws(StoreTrouble) {
    // The caller of su sets its limits; one that ends within the page would tear it.
    guard sys_file_size_limit() >= facts.size else { throw path.trouble("pwrite", EFBIG) }
    // SAFETY: the buffer lives for the call.
    let done = unsafe page.withUnsafeBytes { buffer -> Int64 in
      guard let base = buffer.baseAddress else { return 0 }
      return unsafe sys_write(descriptor.number, base, buffer.count, UInt64(offset))
    }
    // A short write sets no errno; the reason, such as a full disk or a limit, shows at the next
    // one.
    guard try checked(done, "pwrite") == Int64(page.count) else {
      throw path.trouble("pwrite", EIO)
    }
    try checked(Int64(sys_sync_data(descriptor.number)), "fdatasync")
  }
}
