/// A path or a name in a folder, as the kernel takes it. No `String`: its way into C would bring
/// some ten kilobytes into the module.
struct Path: Sendable, ExpressibleByStringLiteral {
  /// The bytes with a NUL at their end, to be handed to C.
  private(set) var cString: [UInt8]

  init(_ bytes: [UInt8]) {
    cString = bytes
    cString.append(0)
  }

  init(_ text: String) { self.init([UInt8](text.utf8)) }

  init(stringLiteral text: StaticString) {
    self.init(text.withUTF8Buffer { unsafe [UInt8]($0) })
  }

  /// Without the NUL.
  var bytes: ArraySlice<UInt8> { cString.dropLast() }

  /// For people.
  @inline(never) var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The path of `name` in this folder.
  @inline(never) static func / (folder: Path, name: Path) -> Path {
    Path(folder.bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  private init(_ bytes: ArraySlice<UInt8>) { self.init([UInt8](bytes)) }

  @inline(never) func trouble(_ call: StaticString, _ errno: Int32) -> StoreTrouble {
    .system(call, path: text, errno: errno)
  }
}
