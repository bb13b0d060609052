/// Names in a folder of the store that are nobody's: they begin with `.`, as no user's does.
enum Leftover {
  /// Being made, or being taken apart: whatever a crash leaves of it is wiped.
  static let unfinished: StaticString = ".tmp-"
  static let removed: StaticString = ".gone-"

  /// Being put in the place of `name` file by file, where folders cannot be exchanged at once.
  static func moving(_ name: Path) -> Path { named(moving, [UInt8](name.bytes)) }
  static let moving: StaticString = ".moving-"

  /// A name of that kind.
  static func named(_ prefix: StaticString, _ rest: [UInt8]) -> Path {
    Path(bytes(prefix) + rest)
  }

  /// What follows the prefix; nil for another kind of name.
  static func rest(of name: [UInt8], after prefix: StaticString) -> [UInt8]? {
    name.starts(with: bytes(prefix)) ? [UInt8](name.dropFirst(prefix.utf8CodeUnitCount)) : nil
  }

  private static func bytes(_ text: StaticString) -> [UInt8] {
    text.withUTF8Buffer { unsafe [UInt8]($0) }
  }
}
