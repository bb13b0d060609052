import CService
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
package import SallyportSupport

/// The file in which a verifier keeps what was revoked. A service and `revoke` may have it at once.
package struct RevocationFile: Sendable {
  /// What is sealed with the key, and whether that is all of the file.
  struct Content {
    let rows: [RevokedRow]
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
    guard text.starts(with: Self.head.utf8) else { return Content(rows: [], isWhole: false) }
    let lines = text.dropFirst(Self.head.utf8.count).split(separator: UInt8(ascii: "\n"))
    let rows = lines.compactMap { RevokedRow(line: Array($0), key) }
    return Content(
      rows: rows, isWhole: rows.count == lines.count && text.last == UInt8(ascii: "\n"))
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
    try alone { () throws(PrivateFile.Fault) in
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
      if found?.isWhole != true || found?.rows != sorted { try write(sorted) }
      return sorted
    }
  }

  /// With the present key.
  func sealAgain() throws(PrivateFile.Fault) {
    try alone { () throws(PrivateFile.Fault) in
      if let found = try read(), found.isWhole { try write(found.rows) }
    }
  }

  private func write(_ rows: [RevokedRow]) throws(PrivateFile.Fault) {
    var text = Array(Self.head.utf8)
    for row in rows {
      guard let seal = try? row.seal(under: key) else { throw .outOfMemory }
      text += row.line(seal)
    }
    do throws(SystemError) {
      try replaceFile(path, text)
    } catch {
      throw .system("write", errno: error.number)
    }
  }

  /// While no other process does so; `flock` where another one does not let go within a second.
  private func alone<R>(_ body: () throws(PrivateFile.Fault) -> R) throws(PrivateFile.Fault) -> R {
    let directory: OpenFile
    do throws(SystemError) {
      directory = try OpenFile(parentDirectory(of: path), O_RDONLY | O_DIRECTORY)
    } catch {
      throw .system("open", errno: error.number)
    }
    for _ in 0..<100 {
      // It is let go with the descriptor.
      if flock(directory.number, LOCK_EX | LOCK_NB) == 0 { return try body() }
      guard errno == EWOULDBLOCK || errno == EINTR else { break }
      _ = poll(nil, 0, 10)
    }
    throw .system("flock", errno: errno)
  }
}

extension RevokedRow {
  /// A line of the file: subject and seal in hexadecimal, and between them host and time.
  fileprivate func line(_ seal: [UInt8]) -> [UInt8] {
    let time = Array(String(max(at, 0)).utf8)
    let fields = [hexadecimal(subject), host, time, hexadecimal(seal)]
    return Array(fields.joined(separator: [UInt8(ascii: " ")])) + [UInt8(ascii: "\n")]
  }

  fileprivate init?(line: [UInt8], _ key: FleetKey) {
    let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard fields.count == 4, let pin = Pin(hex: String(decoding: fields[0], as: UTF8.self)),
      let at = Int64(String(decoding: fields[2], as: UTF8.self))
    else { return nil }
    self.init(subject: pin.bytes, host: Array(fields[1]), at: at)
    let seal = Secret(Array(fields[3])).flatMap { $0.octets($0.count / 2, spelledIn: 0..<$0.count) }
    guard let seal, isRight(seal, under: key), self.line(seal) == line + [UInt8(ascii: "\n")] else {
      return nil
    }
  }
}
