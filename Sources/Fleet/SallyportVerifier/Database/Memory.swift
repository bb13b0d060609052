import CService
import Glibc
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
    guard let content = try? PrivateFile.read(path, upTo: 4096) else { return nil }
    let text = content.bytes(in: 0..<content.count)
    let values = text.split(separator: UInt8(ascii: "\n")).suffix(2).compactMap { line in
      line.split(separator: UInt8(ascii: " ")).last.flatMap {
        UInt64(String(decoding: $0, as: UTF8.self))
      }
    }
    guard values.count == 2 else { return nil }
    let record = Record(mark: values[0], distrust: values[1])
    return bytes(of: record) == text ? record : nil
  }

  private static func bytes(of record: Record) -> [UInt8] {
    Array((head + "mark = \(record.mark)\ndistrust = \(record.distrust)\n").utf8)
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

// What a verifier that is started makes of the database that it finds.
extension Database {
  /// How many of its marks a verifier may not have written down when it was killed.
  private static var unwritten: UInt64 { 3 }
  /// By how much the last signs of life of verifiers differ that were stopped at the same time, in
  /// milliseconds.
  private static var slack: Int64 { 4000 }

  /// Whether nothing went back since this verifier was stopped, as far as can be said. Where
  /// something has, or nobody can say, it is written down that no code up to now counts.
  func remembers(_ own: OwnRows, by connection: DatabaseConnection) throws(DatabaseFault) -> Bool {
    guard let memory else { return true }
    let (number, mark) = (books.withLock { $0.highest }, own.numbers[Books.witness] ?? 0)
    if let record = memory.record {
      books.withLock { $0.highest = max($0.highest, record.distrust) }
      if mark < record.mark || number < record.distrust {
        alert("rows of the database went back while this verifier was stopped")
        try distrust(by: connection, unlessAbove: record.distrust)
        return false
      }
      // Else this machine was put back, or copied.
      let isOwn = mark - record.mark <= Self.unwritten
      if isOwn, try others(by: connection).allSatisfy({ $0.time <= own.time + Self.slack }) {
        return true
      }
    } else if mark == 0 {
      // A new one, or one of the former version until now.
      return true
    }
    if try isVouched(by: connection) { return true }
    alert("no verifier is there that can say that the database did not go back")
    try distrust(by: connection, unlessAbove: number)
    return false
  }

  /// Whether another one answers hosts: it says that it lives while this one looks. It has seen the
  /// database without a gap, or been told the same way.
  private func isVouched(by connection: DatabaseConnection) throws(DatabaseFault) -> Bool {
    let first = try others(by: connection)
    note(.notice, "waiting for a verifier that was there until later than this one")
    let end = sys_monotonic() + patienceAtStart * 1_000_000
    repeat {
      _ = poll(nil, 0, 200)
      let isThere = try others(by: connection).contains { other in
        other.posted == connection.server
          && !first.contains { $0.name == other.name && $0.time >= other.time }
      }
      if isThere { return true }
    } while sys_monotonic() < end
    return false
  }
}
