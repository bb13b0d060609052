internal import OneTimePassword

/// Names in a directory of the store that belong to no user: they begin with `.`, as no user's
/// does.
enum Leftover {
  /// Being created or removed; what a crash leaves is wiped.
  static let unfinished: StaticString = ".tmp-"
  static let removed: StaticString = ".gone-"

  /// Being created without the lock of all commands: it is locked itself, and not touched for ten
  /// minutes.
  static let unfinishedAlone: StaticString = ".new-"

  /// Being moved to `name` file by file, if the file system cannot exchange directories.
  static func moving(_ name: Path) -> Path { named(moving, name.bytes) }
  static let moving: StaticString = ".moving-"

  /// A name with this prefix.
  static func named(_ prefix: StaticString, _ rest: [UInt8]) -> Path {
    Path(bytes(of: prefix) + rest)
  }
}
