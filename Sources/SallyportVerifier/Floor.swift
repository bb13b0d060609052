import Synchronization

/// The highest version that this verifier has seen of each user: a lower one in the database means
/// that what was saved has been lost, by a restored backup or by a row put back. Sixteen bytes for
/// a user; it begins anew with the process.
final class Floor: Sendable {
  private let versions = Mutex<[UInt64: UInt64]>([:])

  /// nil: not seen. `user`: the beginning of a digest of his name.
  subscript(_ user: UInt64) -> UInt64? { versions.withLock { $0[user] } }

  func raise(_ user: UInt64, to version: UInt64) {
    versions.withLock { $0[user] = max($0[user] ?? 0, version) }
  }
}
