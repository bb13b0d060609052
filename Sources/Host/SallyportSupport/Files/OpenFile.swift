package import Glibc
package import OneTimePassword

/// The errno of a failed system call.
package struct SystemError: Error, Equatable, Sendable {
  package let number: Int32

  package init(_ number: Int32) { self.number = number }

  /// The errno of the call that has just failed.
  package static var last: SystemError { SystemError(errno) }

  /// The file to read is not a regular file.
  package static let notRegular = SystemError(-1)
  /// The file to read is longer than allowed.
  package static let tooLong = SystemError(-2)
}

/// Repeats a call while signals interrupt it. A negative result is a failure.
func uninterrupted(_ call: () -> Int) -> Result<Int, SystemError> {
  while true {
    let result = call()
    if result >= 0 { return .success(result) }
    if errno != EINTR { return .failure(.last) }
  }
}

/// An open file with the close-on-exec flag, which is closed at the end of the value's life.
package struct OpenFile: ~Copyable {
  package let number: Int32

  /// open(2) with these flags. Only the owner can access a new file.
  package init(_ path: String, _ flags: Int32) throws(SystemError) {
    // SAFETY: the C string lives for the call.
    number = unsafe open(path, flags | O_CLOEXEC | O_NOCTTY, 0o600)
    if number < 0 { throw .last }
  }

  /// Duplicates an open descriptor.
  package init(duplicating descriptor: Int32) throws(SystemError) {
    number = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    if number < 0 { throw .last }
  }

  deinit { close(number) }

  /// Closes the file like `deinit`, but throws if that fails.
  package consuming func finish() throws(SystemError) {
    let number = number
    discard self
    if close(number) != 0 { throw .last }
  }

  package func facts() throws(SystemError) -> stat {
    var facts = stat()
    // SAFETY: filled within the call.
    if unsafe fstat(number, &facts) != 0 { throw .last }
    return facts
  }

  /// The first bytes of the file, at most `count`.
  package func bytes(_ count: Int) throws(SystemError) -> [UInt8] {
    let number = number
    var result: Result<Int, SystemError> = .success(0)
    // SAFETY: as many bytes are initialized as were read.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      unsafe result = readAll(from: number, into: UnsafeMutableRawBufferPointer(buffer))
      initialized = (try? result.get()) ?? 0
    }
    _ = try result.get()
    return bytes
  }

  /// The whole file; throws `tooLong` where it is longer than `longest`, in bytes.
  package func secret(atMost longest: Int) throws(SystemError) -> Secret {
    let size = try facts().size
    if size > longest { throw .tooLong }
    // One byte more than expected, to see whether there is more.
    var capacity = max(size, 65536) + 1
    var whole = Secret(count: 0)
    while let soFar = whole {
      guard let next = Secret(count: capacity) else { break }
      let number = number
      // SAFETY: the copied bytes fit, and the bytes read fit after them; both buffers live for the
      // call.
      let got = unsafe next.withMutableBytes { target in
        unsafe soFar.withBytes { unsafe target.copyMemory(from: $0) }
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[soFar.count...])
        return unsafe readAll(from: number, into: rest)
      }
      let count = soFar.count + (try got.get())
      if count > longest { throw .tooLong }
      whole = next.slice(0..<count)
      if count < capacity, let whole { return whole }
      capacity = min(capacity * 4, longest + 1)
    }
    throw SystemError(ENOMEM)
  }

  /// fsync(2): writes the content, or the names of a directory, to the disk.
  package func sync() throws(SystemError) {
    let number = number
    _ = try uninterrupted { Int(fsync(number)) }.get()
  }
}

/// One read(2): at most as many bytes as the buffer holds, 0 at the end.
@unsafe package func readSome(
  from descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
) -> Result<Int, SystemError> {
  uninterrupted { unsafe read(descriptor, buffer.baseAddress, buffer.count) }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
@unsafe package func readAll(
  from descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
) -> Result<Int, SystemError> {
  var count = 0
  while count < buffer.count {
    let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
    switch unsafe readSome(from: descriptor, into: rest) {
    case .success(0): return .success(count)
    case .success(let got): count += got
    case .failure(let error): return .failure(error)
    }
  }
  return .success(count)
}

/// Writes all bytes.
@unsafe package func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Result<
  Void, SystemError
> {
  var rest = unsafe bytes
  while unsafe !rest.isEmpty {
    switch uninterrupted({ unsafe write(descriptor, rest.baseAddress, rest.count) }) {
    case .success(let done): unsafe rest = UnsafeRawBufferPointer(rebasing: rest[done...])
    case .failure(let error): return .failure(error)
    }
  }
  return .success(())
}

/// Bytes that can be written to a file.
package protocol Content {
  func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value
}

extension [UInt8]: Content {
  package func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
    unsafe withUnsafeBytes(body)
  }
}

extension Secret: Content {}

extension stat {
  package var isRegular: Bool { st_mode & S_IFMT == S_IFREG }
  /// The twelve permission bits.
  package var permissions: mode_t { st_mode & 0o7777 }
  /// In bytes.
  package var size: Int { Int(clamping: st_size) }
}

/// stat(2) of a path, or of the link itself if links are not followed.
package func facts(of path: String, following: Bool = false) throws(SystemError) -> stat {
  var facts = stat()
  // SAFETY: the C string lives for the call, in which the facts are filled.
  let result = unsafe following ? stat(path, &facts) : lstat(path, &facts)
  if result != 0 { throw .last }
  return facts
}
