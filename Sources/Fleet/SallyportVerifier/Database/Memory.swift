import OneTimePassword
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// How far the database was when a verifier saw it last, in a file of its own: a verifier that is
/// started again finds by it that rows of before were put back meanwhile.
final class Memory: Sendable {
  struct Record: Equatable, Sendable {
    /// The version of this verifier's row in `state`.
    var mark: UInt64
    /// The highest distrust that was ever there.
    var distrust: UInt64
    /// The number of row 0 of each other verifier, as it was read last; nil: the file is one of
    /// before they were in it.
    var others: [[UInt8]: UInt64]?
  }

  /// What the file said when this verifier was started; nil: there is none that can be read.
  let record: Record?
  private let path: String
  private let hasComplained = Locked(false)

  init(at path: String) {
    self.path = path
    record = Self.read(path)
  }

  private static let head = """
    # Kept by sallyport-verifier(8): how far the database was. It may not be older than it is.
    version = 1

    """

  /// A file with anything else is none.
  private static func read(_ path: String) -> Record? {
    guard let content = try? PrivateFile.read(path, upTo: 1 << 20) else { return nil }
    let text = content.bytes(in: 0..<content.count)
    guard text.starts(with: head.utf8) else { return nil }
    // Each is a word, a sign, a number, and the rest: a name.
    let lines = text.dropFirst(head.utf8.count).split(separator: UInt8(ascii: "\n")).map {
      $0.split(separator: UInt8(ascii: " "), maxSplits: 3)
    }
    let numbers = lines.compactMap { line in
      line.count > 2 ? UInt64(String(decoding: line[2], as: UTF8.self)) : nil
    }
    guard numbers.count == lines.count, numbers.count >= 2 else { return nil }
    var record = Record(mark: numbers[0], distrust: numbers[1])
    let others = zip(lines, numbers).dropFirst(2).filter { $0.0.count == 4 }
    let hasThem = numbers.count > 2
    if hasThem {
      record.others = Dictionary(
        others.map { (Array($0.0[3]), $0.1) }, uniquingKeysWith: { $1 })
    }
    return bytes(of: record) == text ? record : nil
  }

  /// `others` is the number of the lines that follow it.
  private static func bytes(of record: Record) -> [UInt8] {
    var text = Array((head + "mark = \(record.mark)\ndistrust = \(record.distrust)\n").utf8)
    guard let others = record.others else { return text }
    text += Array("others = \(others.count)\n".utf8)
    for (name, n) in others.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      text += Array("other = \(n) ".utf8) + name + [UInt8(ascii: "\n")]
    }
    return text
  }

  /// Where it cannot be written the next start does as if the file were lost.
  func keep(_ record: Record, of database: Database) {
    do throws(SystemError) {
      try replaceFile(path, Self.bytes(of: record))
      hasComplained.withLock { $0 = false }
    } catch {
      let isNews = hasComplained.withLock { hasComplained in
        defer { hasComplained = true }
        return !hasComplained
      }
      guard isNews else { return }
      database.alert(
        "\(path): \(errnoDescription(error.number)): after its next start this verifier cannot say "
          + "whether the database went back")
    }
  }
}
