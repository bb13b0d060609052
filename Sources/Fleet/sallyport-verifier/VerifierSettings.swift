import Glibc
import SallyportSupport

/// What `init` has settled for the other verbs of this verifier: whose the directory is, and how
/// its database is reached.
extension Common {
  var databaseFile: String { directory + "/database" }

  /// Makes it where it is not there, on the disk with its name.
  func makeDirectory() throws {
    do throws(SystemError) {
      // SAFETY: the C string lives for the call.
      if unsafe mkdir(directory, 0o700) != 0, errno != EEXIST { throw .last }
      try syncParent(of: directory)
    } catch {
      // Its owner may not read the one that it is in.
      if error.number != EACCES { throw Failure("\(directory): \(errnoDescription(error.number))") }
    }
  }

  /// From here on as the user whose the directory is: files that root makes there must be his, who
  /// runs the verifier; and he must be able to read what root tries with.
  func actAsOwner() throws {
    var facts = stat()
    // SAFETY: the C string lives for the call, which fills the other.
    guard geteuid() == 0, unsafe stat(directory, &facts) == 0, facts.st_uid != 0 else { return }
    guard setgroups(0, nil) == 0, setgid(facts.st_gid) == 0, setuid(facts.st_uid) == 0,
      geteuid() == facts.st_uid
    else { throw Failure("setuid to the owner of \(directory): \(errnoDescription(errno))") }
    // libpq looks for certificates there: not in root's, which he may not enter.
    // SAFETY: the C string lives for the call; there is no other thread yet.
    _ = unsafe unsetenv("HOME")
  }

  /// As libpq has them: those of the line, else those that `init` has written down.
  func words() throws -> String {
    if let database { database } else { try written() }
  }

  private func written() throws -> String {
    let words: ArraySlice<UInt8>
    do throws(SystemError) {
      words = try OpenFile(databaseFile, O_RDONLY).bytes(4095).prefix { $0 != 0 && $0 != 10 }
    } catch {
      let reason = errnoDescription(error.number)
      throw Failure("\(databaseFile): \(reason)\nhint: sallyport-verifier init --database WORDS")
    }
    guard !words.isEmpty else {
      throw Failure(
        "\(databaseFile): empty\nhint: remove it; then sallyport-verifier init --database WORDS")
    }
    return String(decoding: words, as: UTF8.self)
  }

  /// Writes down how verifiers reach the database: as who made its tables does, but with the rights
  /// of verifiers. What is written there stays.
  func settle(_ words: String) throws {
    do throws(SystemError) {
      try makeFile(databaseFile, Array((Self.ofVerifiers(words) + "\n").utf8))
    } catch {
      guard error.number == EEXIST else {
        throw Failure("\(databaseFile): \(errnoDescription(error.number))")
      }
      if let database, try written() != Self.ofVerifiers(database) {
        tell("\(databaseFile) is kept: verifiers connect with its connection string")
      }
    }
  }

  /// Of two users libpq takes the last one.
  static func ofVerifiers(_ words: String) -> String {
    guard words.hasPrefix("postgresql://") || words.hasPrefix("postgres://") else {
      return words + " user=sallyport_verifier"
    }
    return words + (words.contains("?") ? "&" : "?") + "user=sallyport_verifier"
  }
}
