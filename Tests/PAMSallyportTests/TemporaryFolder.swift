import Foundation

/// A folder that is removed with its last reference.
final class TemporaryFolder {
  let path: String

  init() throws {
    // /var/tmp and /tmp are sticky; the checks of the store allow no other shared folder above it.
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("sallyport-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    path = folder.path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
