import Foundation

/// A directory that is removed with its last reference.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init() throws {
    // /var/tmp and /tmp are sticky; the checks of the store allow no other shared directory above
    // it.
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("sallyport-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    path = directory.path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
