import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

extension Statement {
  fileprivate static let incarnation = "SELECT incarnation FROM fleet"

  /// $1 a new one.
  fileprivate static let nameIncarnation = """
    UPDATE fleet SET incarnation = $1 WHERE incarnation IS NOT DISTINCT FROM $2
    """
}

/// Which database a verifier works with, in a file of its own. A database has a random of its own
/// from its first verifier on, sealed beside the row of the fleet: so another one with the same
/// key, such as one that was made by mistake, is not taken for it, whatever its server is called.
package struct IncarnationFile: Sendable {
  private let path: String

  package init(at path: String) { self.path = path }

  private static let head = """
    # Kept by sallyport-verifier(8): which database this verifier works with.
    version = 1
    incarnation =
    """

  /// In hexadecimal; nil: there is no file.
  fileprivate func read() throws(DatabaseFault) -> [UInt8]? {
    let text: [UInt8]
    do throws(PrivateFile.Fault) {
      let content = try PrivateFile.read(path)
      text = content.bytes(in: 0..<content.count)
    } catch {
      if error == .absent { return nil }
      throw .unusable("\(path): \(error.text)")
    }
    let head = Array((Self.head + " ").utf8)
    let digits = text.dropFirst(head.count).dropLast()
    guard text.starts(with: head), text.last == UInt8(ascii: "\n"),
      digits.count == 2 * Database.incarnationLength
    else { throw .unusable("\(path): damaged: sallyport-verifier adopt-database makes it again") }
    return Array(digits)
  }

  /// On disk before this returns.
  fileprivate func write(_ digits: [UInt8]) throws(DatabaseFault) {
    let text = Array((Self.head + " ").utf8) + digits + [UInt8(ascii: "\n")]
    do throws(SystemError) {
      try replaceFile(path, text)
    } catch {
      throw .unusable("\(path): \(errnoDescription(error.number))")
    }
  }
}

extension Database {
  /// Of the random, before its seal.
  static let incarnationLength = 16

  /// Throws where the database is another one than this verifier's. A verifier that has none takes
  /// this one for its own.
  func checkIncarnation(by line: DatabaseConnection) throws(DatabaseFault) {
    guard let incarnationFile else { return }
    let last = books.withLock { $0.incarnation.map(Self.digits) }
    let known = try incarnationFile.read() ?? last
    let there = try incarnation(by: line, orMake: known == nil)
    if known == nil, let there { keep(there, in: incarnationFile) }
    guard let there, known == nil || known == Self.digits(of: there) else {
      throw .unusable(
        "this verifier has worked with another incarnation of it; if this is the right one: "
          + "sallyport-verifier adopt-database")
    }
    books.withLock { $0.incarnation = there }
  }

  /// Without it this verifier goes by what it knows until it ends.
  private func keep(_ incarnation: [UInt8], in file: IncarnationFile) {
    do throws(DatabaseFault) {
      try file.write(Self.digits(of: incarnation))
    } catch {
      alert("this verifier cannot keep which database this is: \(error.text)")
    }
  }

  /// With its seal, as it stands in the database; nil: it has none.
  private func incarnation(by line: DatabaseConnection, orMake isMade: Bool)
    throws(DatabaseFault) -> [UInt8]?
  {
    if let found = try line.ask(Statement.incarnation).bytes(0, 0) { return try opened(found) }
    return isMade ? try newIncarnation(by: line, insteadOf: nil) : nil
  }

  /// `old`: one that cannot be believed; nil: there is none.
  private func newIncarnation(by line: DatabaseConnection, insteadOf old: [UInt8]?)
    throws(DatabaseFault) -> [UInt8]
  {
    let random: [UInt8]
    do throws(StoreTrouble) {
      let length = Self.incarnationLength
      random = try Random.secret(count: length).bytes(in: 0..<length)
    } catch {
      throw .unusable("getrandom failed")
    }
    let new = try Self.sealing { () throws(CryptoError) in random + (try seal(of: random)) }
    _ = try line.ask(Statement.nameIncarnation, [.bytes(new), old.map { .bytes($0) } ?? .null])
    // Another verifier may have been faster.
    guard let found = try line.ask(Statement.incarnation).bytes(0, 0) else {
      throw .unusable("the fleet row is missing: sallyport-verifier init")
    }
    return try opened(found)
  }

  private func seal(of random: [UInt8]) throws(CryptoError) -> [UInt8] {
    try key.bind("incarnation", [random])
  }

  private func opened(_ found: [UInt8]) throws(DatabaseFault) -> [UInt8] {
    guard isOurs(found) else {
      throw .unusable(
        "its incarnation was modified by somebody without the key: sallyport-verifier "
          + "adopt-database on each verifier")
    }
    return found
  }

  private func isOurs(_ found: [UInt8]) -> Bool {
    let length = Self.incarnationLength
    return key.isRight(
      Array(found.dropFirst(length)), "incarnation", [Array(found.prefix(length))])
  }

  /// Whether this is the one that this verifier knows, also sealed with the other key.
  func isKnown(_ found: [UInt8]?) -> Bool {
    let known = books.withLock { $0.incarnation }
    guard let known, known != found else { return true }
    guard let found, Self.digits(of: found) == Self.digits(of: known), isOurs(found) else {
      return false
    }
    books.withLock { $0.incarnation = found }
    return true
  }

  /// As it stands there, and sealed with the present key; nil where there is none, or one that
  /// somebody without the key has made.
  func resealedIncarnation() throws(DatabaseFault) -> (old: [UInt8], new: [UInt8])? {
    guard let old = try ask(Statement.incarnation).0.bytes(0, 0), isOurs(old) else { return nil }
    let random = Array(old.prefix(Self.incarnationLength))
    return (old, try Self.sealing { () throws(CryptoError) in random + (try seal(of: random)) })
  }

  func replaceIncarnation(_ old: [UInt8], by new: [UInt8]) throws(DatabaseFault) -> Bool {
    _ = try ask(Statement.nameIncarnation, [.bytes(new), .bytes(old)])
    return try ask(Statement.incarnation).0.bytes(0, 0) == new
  }

  /// For the command: from now on this verifier works with this database, and no code up to now
  /// counts.
  package func adopt() throws(DatabaseFault) {
    guard let incarnationFile else { return }
    let line = try DatabaseConnection(words, worker: 1)
    let found = try line.ask(Statement.incarnation).bytes(0, 0)
    let there: [UInt8]
    if let found, isOurs(found) {
      there = found
    } else {
      there = try newIncarnation(by: line, insteadOf: found)
    }
    try distrust()
    try incarnationFile.write(Self.digits(of: there))
  }

  private static func digits(of incarnation: [UInt8]) -> [UInt8] {
    hexadecimal(Array(incarnation.prefix(incarnationLength)))
  }
}
