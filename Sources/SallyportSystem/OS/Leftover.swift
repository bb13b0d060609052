internal import OneTimePassword

/// Names in a directory of the store that are nobody's: they begin with `.`, as no user's does.
enum Leftover {
  /// Being made, or being taken apart: whatever a crash leaves of it is wiped.
  static let unfinished: StaticString = ".tmp-"
  static let removed: StaticString = ".gone-"

  /// Being made with no lock of all commands: locked itself, and left alone for ten minutes.
  static let unfinishedAlone: StaticString = ".new-"

  /// Being put in the place of `name` file by file, where directories cannot be exchanged at once.
  static func moving(_ name: Path) -> Path { named(moving, name.bytes) }
  static let moving: StaticString = ".moving-"

  /// A name of that kind.
  static func named(_ prefix: StaticString, _ rest: [UInt8]) -> Path {
    Path(bytes(of: prefix) + rest)
  }
}
