import Glibc
import SallyportService

/// What `init` has settled for the other verbs of this verifier: whose the directory is, and how
/// its database is reached.
extension Common {
  var databaseFile: String { directory + "/database" }

  /// From here on as the user whose the directory is: files that root makes there must be his, who
  /// runs the verifier; and he must be able to read what root tries with.
  func actAsOwner() throws {
    var facts = stat()
    // SAFETY: the C string lives for the call, which fills the other.
    guard geteuid() == 0, unsafe stat(directory, &facts) == 0, facts.st_uid != 0 else { return }
    guard setgroups(0, nil) == 0, setgid(facts.st_gid) == 0, setuid(facts.st_uid) == 0,
      geteuid() == facts.st_uid
    else { throw Failure("setuid to the owner of \(directory): \(errnoText(errno))") }
    // libpq looks for certificates there: not in root's, which he may not enter.
    // SAFETY: the C string lives for the call; there is no other thread yet.
    _ = unsafe unsetenv("HOME")
  }

  /// As libpq has them: those of the line, else those that `init` has written down.
  func words() throws -> String {
    if let database { database } else { try written() }
  }

  private func written() throws -> String {
    // SAFETY: the C strings live for the call.
    guard let file = unsafe fopen(databaseFile, "re") else {
      throw Failure(
        "\(databaseFile): \(errnoText(errno))\nhint: sallyport-verifier init --database WORDS")
    }
    defer { unsafe fclose(file) }
    var buffer = [CChar](repeating: 0, count: 4096)
    // SAFETY: the buffer lives for the call and has the room that is named.
    let isRead = unsafe buffer.withUnsafeMutableBufferPointer { buffer in
      unsafe fgets(buffer.baseAddress, Int32(buffer.count), file) != nil
    }
    let words = buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
    guard isRead, !words.isEmpty else {
      throw Failure(
        "\(databaseFile): empty\nhint: remove it; then sallyport-verifier init --database WORDS")
    }
    return String(decoding: words, as: UTF8.self)
  }

  /// Writes down how verifiers reach the database: as who made its tables does, but with the rights
  /// of verifiers. What is written there stays.
  func settle(_ words: String) throws {
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(databaseFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      guard errno == EEXIST else { throw Failure("\(databaseFile): \(errnoText(errno))") }
      if let database, try written() != Self.ofVerifiers(database) {
        tell("\(databaseFile) stays as it is: by its words verifiers reach the database")
      }
      return
    }
    defer { close(file) }
    let text = Self.ofVerifiers(words) + "\n"
    // SAFETY: the string lives for the call.
    guard unsafe write(file, text, text.utf8.count) == text.utf8.count, fsync(file) == 0 else {
      let number = errno
      // SAFETY: as above.
      _ = unsafe unlink(databaseFile)
      throw Failure("\(databaseFile): \(errnoText(number))")
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
