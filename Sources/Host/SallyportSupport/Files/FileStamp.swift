import CService

/// Identifies a file, and shows whether it has changed.
package struct FileStamp: Equatable, Sendable {
  private let (file, size, changed): (UInt64, UInt64, Int64)

  /// nil where there is none.
  package init?(of path: String) {
    var stamp = service_stamp()
    // SAFETY: the C string lives for the call, in which the stamp is filled.
    guard unsafe service_stamp_of(path, &stamp) == 0 else { return nil }
    (file, size, changed) = (stamp.file, stamp.size, stamp.changed)
  }
}
