import Glibc
package import OneTimePassword

/// A file that only its owner may write and, if it holds a key, read. `make` writes it atomically.
package enum PrivateFile {
  /// Why one cannot be used.
  package enum Fault: Error, Equatable {
    case system(String, errno: Int32)
    /// Not a regular file of the effective user's alone.
    case unsafe
    /// Longer than such a file can be, or not what it should hold.
    case damaged
    /// There is one, with another content.
    case exists
    case outOfMemory

    /// There is none.
    package static let absent = Fault.system("open", errno: ENOENT)

    /// For people, behind the name of the file.
    package var text: String {
      switch self {
      case .system(let call, let number): "\(call): \(errnoDescription(number))"
      case .unsafe: "not a file that only its owner can read (chmod 600)"
      case .damaged: "damaged, or not a key"
      case .exists: "exists, with another content"
      case .outOfMemory: "out of memory"
      }
    }
  }

  /// The whole content, of at most `longest` bytes. Only the effective user may own and read the
  /// file; with `isPublic` root may own it too, and everybody read it.
  package static func read(_ path: String, upTo longest: Int = 4096, isPublic: Bool = false)
    throws(Fault) -> Secret
  {
    var call = "open"
    do throws(SystemError) {
      let file = try OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      call = "read"
      let facts = try file.facts()
      let isOwned = facts.st_uid == geteuid() || isPublic && facts.st_uid == 0
      if facts.isRegular, isOwned, facts.st_mode & (isPublic ? 0o022 : 0o077) == 0 {
        return try file.secret(atMost: longest)
      }
    } catch {
      throw error == .tooLong ? .damaged : .system(call, errno: error.number)
    }
    throw .unsafe
  }

  /// A new file of mode 0600 with these bytes, on disk with its name before this returns. `exists`
  /// where there is one with others; one with the same is left.
  package static func make(_ path: String, _ bytes: Secret) throws(Fault) {
    do throws(SystemError) {
      try makeFile(path, bytes)
    } catch {
      guard error.number == EEXIST else { throw .system("write", errno: error.number) }
      let found: Secret
      do throws(Fault) {
        found = try read(path)
      } catch {
        throw error == .damaged ? .exists : error
      }
      guard constantTimeEquals(found, bytes) else { throw .exists }
    }
  }
}
