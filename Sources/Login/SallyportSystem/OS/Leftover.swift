internal import OneTimePassword

/// Names in a directory of the store that belong to no user: they begin with `.`, as no user's
/// does.
package enum Leftover {
  /// Being created; what a crash leaves is wiped.
  package static let unfinished: StaticString = ".tmp-"

  /// Being created without the lock of all commands: it is locked itself, and not touched for ten
  /// minutes.
  package static let unfinishedAlone: StaticString = ".new-"

  /// Being moved to `name` file by file, if the file system cannot exchange directories.
  package static func moving(_ name: Path) -> Path { named(moving, name.bytes) }
  package static let moving: StaticString = ".moving-"

  /// A name with this prefix.
  package static func named(_ prefix: StaticString, _ rest: [UInt8]) -> Path {
    Path(bytes(of: prefix) + rest)
  }
}
