import Glibc
import OneTimePassword
import SallyportSupport

/// Reads a file that the user named. It must be a regular file, not a symbolic link, of at most
/// `Limits.file` bytes.
func content(ofNamed path: String) throws(SystemError) -> Secret {
  let file = try OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  let facts = try file.facts()
  if !facts.isRegular { throw .notRegular }
  if facts.size > Limits.file { throw .tooLong }
  return try content(of: file)
}

private func content(of file: borrowing OpenFile) throws(SystemError) -> Secret {
  guard let buffer = Secret(count: Limits.file) else { throw SystemError(ENOMEM) }
  let number = file.number
  // SAFETY: the buffer lives for the call.
  let got = unsafe buffer.withMutableBytes { unsafe readAll(from: number, into: $0) }
  guard let content = buffer.slice(0..<(try got.get())) else { throw SystemError(ENOMEM) }
  return content
}
