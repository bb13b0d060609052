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

  /// Reads a user's file, with that user's rights alone, so that no link in the path leads to one
  /// that only root can read. It must belong to the user or root, and nobody else may read it.
  /// Where root named it (`isNamed`), and `isRootsAlone`, it is read with root's rights.
  package init(
    _ path: String, of user: UInt32, _ group: UInt32, isNamed: Bool, longest: Int
  ) throws(Obstacle) {
    let isRoots = isNamed && SourceFile.isRootsAlone(path)
    try self.init(
      path, as: isRoots ? nil : FileReader(user: user, group: group), longest: longest)
    guard owner == user || owner == 0 else { throw .owner(owner, wanted: user, path) }
    guard mode & 0o077 == 0 else { throw .openToOthers(mode: mode, path) }
  }

  /// Whether only root can change the file and where its path leads: each directory from the root
  /// on, none of them a symbolic link, and the file belong to root, who alone may write to them. So
  /// nobody can change it between this and the opening.
  static func isRootsAlone(_ path: String) -> Bool {
    let words = path.utf8.split(separator: UInt8(ascii: "/"))
    guard geteuid() == 0, path.utf8.first == UInt8(ascii: "/"),
      !words.contains(where: { $0.elementsEqual("..".utf8) })
    else { return false }
    var (prefix, isDirectory) = ("/", true)
    for word in [[]] + words.map(Array.init) {
      prefix += (prefix.utf8.count > 1 ? "/" : "") + String(decoding: word, as: UTF8.self)
      guard isDirectory, let facts = try? facts(of: prefix), facts.st_uid == 0,
        facts.permissions & 0o022 == 0
      else { return false }
      isDirectory = facts.st_mode & S_IFMT == S_IFDIR
      guard isDirectory || facts.isRegular else { return false }
    }
    return !isDirectory
  }
}
