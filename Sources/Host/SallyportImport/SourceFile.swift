import Glibc
package import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

/// A file of another module. It is read once and never changed.
package struct SourceFile {
  package let bytes: Secret
  let owner: UInt32
  /// The permission bits.
  package let mode: UInt32

  /// In bytes; enough for some ten million users.
  package static let longestList = 1 << 30

  /// Reads a file named on the command line; `-` is standard input. Any other file must be a
  /// regular one, and symbolic links are not followed.
  package init(_ path: String, longest: Int) throws(Obstacle) {
    try self.init(path, as: nil, longest: longest)
  }

  private init(_ path: String, as reader: FileReader?, longest: Int) throws(Obstacle) {
    do throws(SystemError) {
      let isInput = path == "-"
      let file =
        isInput
        ? try OpenFile(duplicating: 0) : try OpenFile.regular(path, following: false, as: reader)
      let facts = try file.facts()
      guard facts.isRegular || isInput else { throw SystemError.notRegular }
      bytes = try file.secret(atMost: longest)
      (owner, mode) = (facts.st_uid, facts.permissions)
    } catch {
      throw Obstacle(path, error, longest: longest)
    }
  }

  /// Reads a file that a user can change, with that user's rights alone, so that no link in the
  /// path leads to a file that only root can read. The file must belong to the user or root, and
  /// nobody else may read it.
  package init(_ path: String, of user: UInt32, _ group: UInt32, longest: Int) throws(Obstacle) {
    try self.init(path, as: FileReader(user: user, group: group), longest: longest)
    guard owner == user || owner == 0 else { throw .owner(owner, wanted: user, path) }
    guard mode & 0o077 == 0 else { throw .openToOthers(mode: mode, path) }
  }
}
