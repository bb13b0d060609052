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
