internal import OneTimePassword
internal import SallyportCore

/// A path or a file name as bytes for the kernel. Not a `String`, whose conversion for C would add
/// ten kilobytes to the module.
package struct Path: Sendable, ExpressibleByStringLiteral {
  /// The bytes with a NUL at the end, to pass to C.
  package private(set) var cString: [UInt8]

  static let top: Path = "/"
  /// For calls without a path.
  static let none: Path = ""

  @inline(never) package init(_ bytes: [UInt8]) { cString = joined(bytes, [0]) }

  init(_ text: String) { self.init(SallyportSystem.bytes(of: text)) }

  package init(stringLiteral text: StaticString) {
    self.init(OneTimePassword.bytes(of: text))
  }

  /// Without the NUL.
  package var bytes: [UInt8] {
    var bytes = cString
    bytes.removeLast()
    return bytes
  }

  /// The path to show; invalid UTF-8 is escaped. (Repairing it by `String` would add nine
  /// kilobytes.)
  @inline(never) package var text: String {
    String(validating: bytes, as: UTF8.self)
      ?? String(validating: escaped(bytes, limit: bytes.count), as: UTF8.self) ?? ""
  }

  /// The path made of the first `count` bytes.
  func prefix(_ count: Int) -> Path {
    // SAFETY: limited to the bytes that exist.
    unsafe cString.withUnsafeBytes {
      unsafe Path(copy(of: UnsafeRawBufferPointer(rebasing: $0.prefix(count))))
    }
  }

  /// The directory above that of an absolute path.
  package var above: Path {
    let end = bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0
    return end == 0 ? "/" : Path([UInt8](bytes[..<end]))
  }

  /// The path of `name` in this directory.
  @inline(never) package static func / (directory: Path, name: Path) -> Path {
    var path = directory
    path.cString = joined(directory.cString, name.cString)
    path.cString[directory.cString.count - 1] = UInt8(ascii: "/")
    return path
  }

  @inline(never) package func trouble(_ call: StaticString, _ errno: Int32) -> StoreTrouble {
    .system(call, path: text, errno: errno)
  }
}

/// The UTF-8 bytes of a text. On Linux every `String` is stored as UTF-8; the general conversion,
/// for others, would add ten kilobytes.
@inline(never) func bytes(of text: String) -> [UInt8] {
  // SAFETY: the buffer is copied within the call.
  unsafe text.utf8.withContiguousStorageIfAvailable { unsafe [UInt8]($0) } ?? []
}
