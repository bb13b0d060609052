/// Names in a folder of the store that are nobody's: they begin with `.`, as no user's does.
enum Leftover {
  /// Being made, or being taken apart: whatever a crash leaves of it is wiped.
  static let unfinished = ".tmp-"
  static let removed = ".gone-"

  /// Being put in the place of `name` file by file, where folders cannot be exchanged at once.
  static func moving(_ name: String) -> String { movingPrefix + name }
  static let movingPrefix = ".moving-"
}
