import CService
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
package import SallyportSupport

/// The file in which a verifier keeps what was revoked. A service and `revoke` may have it at once.
package struct RevocationFile: Sendable {
  /// What counts, what is kept as it is until its key is here, and whether that is all of the file.
  struct Content {
    let rows: [RevokedRow]
    let kept: [[UInt8]]
    let isWhole: Bool
  }

  /// By which another content is told.
  struct Mark: Equatable, Sendable {
    let (file, size, seconds, nanoseconds): (UInt, Int, Int, Int)
  }

  private static let head = """
    # Kept by sallyport-verifier(8): what was revoked. It may not be lost or older than it is.
    version = 1

    """
  private static let longest = 64 << 20

  let path: String
  private let key: FleetKey

  package init(_ path: String, key: FleetKey) { (self.path, self.key) = (path, key) }

  /// nil where there is none. Throws where it cannot be read: what it says is not known then.
  func read() throws(PrivateFile.Fault) -> Content? {
    let text: [UInt8]
    do throws(PrivateFile.Fault) {
      let content = try PrivateFile.read(path, upTo: Self.longest)
      text = content.bytes(in: 0..<content.count)
    } catch {
      if error == .absent { return nil }
      throw error == .damaged ? .system("read", errno: EFBIG) : error
    }
    guard text.starts(with: Self.head.utf8) else {
      return Content(rows: [], kept: [], isWhole: false)
    }
    let lines = text.dropFirst(Self.head.utf8.count).split(separator: UInt8(ascii: "\n"))
    let read = lines.map { Line(Array($0), key) }
    return Content(
      rows: read.compactMap(\.row), kept: read.compactMap(\.kept),
      isWhole: !read.contains(.damaged) && text.last == UInt8(ascii: "\n"))
  }

  /// nil where there is no file.
  var mark: Mark? {
    var facts = stat()
    // SAFETY: the C string lives for the call, which fills the other.
    guard unsafe stat(path, &facts) == 0 else { return nil }
    return Mark(
      file: facts.st_ino, size: facts.st_size, seconds: facts.st_mtim.tv_sec,
      nanoseconds: facts.st_mtim.tv_nsec)
  }

  /// Makes the union of the file and these rows, on disk before it returns, and gives it. A damaged
  /// file is put aside.
  @discardableResult
  package func add(_ rows: [RevokedRow]) throws(PrivateFile.Fault) -> [RevokedRow] {
    try PrivateFile.alone(beside: path) { () throws(PrivateFile.Fault) in
      var all: [[UInt8]: RevokedRow] = [:]
      let found = try read()
      for row in (found?.rows ?? []) + rows where all[row.subject].map({ $0.at < row.at }) ?? true {
        all[row.subject] = row
      }
      let sorted = all.values.sorted {
        ($0.at, $0.host.count) == ($1.at, $1.host.count)
          ? $0.subject.lexicographicallyPrecedes($1.subject)
          : ($0.at, $0.host.count) < ($1.at, $1.host.count)
      }
      // SAFETY: the C strings live for the call.
      if found?.isWhole == false { _ = unsafe rename(path, path + ".damaged") }
      if found?.isWhole != true || found?.rows != sorted { try write(sorted, found?.kept ?? []) }
      return sorted
    }
  }

  /// With the present key, what counts.
  func sealAgain() throws(PrivateFile.Fault) {
    try PrivateFile.alone(beside: path) { () throws(PrivateFile.Fault) in
      if let found = try read(), found.isWhole { try write(found.rows, found.kept) }
    }
  }

  private func write(_ rows: [RevokedRow], _ kept: [[UInt8]]) throws(PrivateFile.Fault) {
    var text = Array(Self.head.utf8)
    for row in rows {
      guard let seal = try? row.seal(under: key) else { throw .outOfMemory }
      text += row.line(seal)
    }
    for line in kept { text += line + [UInt8(ascii: "\n")] }
    do throws(SystemError) {
      try replaceFile(path, text)
    } catch {
      throw .system("write", errno: error.number)
    }
  }
}

/// A line of the file.
private enum Line: Equatable {
  case row(RevokedRow)
  /// By a key that is not here, that a host was accepted: nothing is allowed by it.
  case kept([UInt8])
  case damaged

  /// What is refused by a line counts also where its key is not here, as in the file of a verifier
  /// that was not there while the fleet changed its key: nobody else writes there.
  init(_ line: [UInt8], _ key: FleetKey) {
    guard let (row, seal) = RevokedRow.read(line), row.line(seal) == line + [UInt8(ascii: "\n")],
      seal.count == FleetKey.sealLength, let id = FleetKey.id(of: seal)
    else {
      self = .damaged
      return
    }
    if key.key(id) != nil {
      self = row.isRight(seal, under: key) ? .row(row) : .damaged
    } else {
      self = row.isOfAccepting ? .kept(line) : .row(row)
    }
  }

  var row: RevokedRow? { if case .row(let row) = self { row } else { nil } }
  var kept: [UInt8]? { if case .kept(let line) = self { line } else { nil } }
}

extension RevokedRow {
  /// A line of the file: subject and seal in hexadecimal, and between them host and time.
  fileprivate func line(_ seal: [UInt8]) -> [UInt8] {
    let time = Array(String(max(at, 0)).utf8)
    let fields = [hexadecimal(subject), host, time, hexadecimal(seal)]
    return Array(fields.joined(separator: [UInt8(ascii: " ")])) + [UInt8(ascii: "\n")]
  }

  fileprivate static func read(_ line: [UInt8]) -> (RevokedRow, seal: [UInt8])? {
    let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard fields.count == 4, let pin = Pin(hex: String(decoding: fields[0], as: UTF8.self)),
      let at = Int64(String(decoding: fields[2], as: UTF8.self)),
      let seal = Secret(Array(fields[3])).flatMap({
        $0.octets($0.count / 2, spelledIn: 0..<$0.count)
      })
    else { return nil }
    return (RevokedRow(subject: pin.bytes, host: Array(fields[1]), at: at), seal)
  }
}
