import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// A policy of the fleet, as somebody has stored it: a row of the table `policy`, and the file in
/// which each verifier keeps the last one that it has seen.
package struct StoredPolicy: SealedRow, Sendable {
  /// 1 for the first one.
  package let serial: UInt64
  /// When it was stored, in seconds since 1970.
  package let at: Int64
  /// Who has stored it, for people: printable characters without blanks.
  package let author: [UInt8]
  /// As sallyport.conf has it.
  package let text: [UInt8]

  /// Of the text, in bytes, as of a policy file.
  package static let longest = 65_536

  package init(serial: UInt64, at: Int64, author: [UInt8], text: [UInt8]) {
    (self.serial, self.at) = (serial, at)
    (self.author, self.text) = (author, text)
  }

  package var primaryKey: [UInt8] { number(serial) }

  package static let table: StaticString = "policy"

  package var fields: [[UInt8]] { [number(serial), number(UInt64(bitPattern: at)), author, text] }

  /// Of two with one serial, as after a restore, the one that was stored later.
  func isNewer(than other: StoredPolicy?) -> Bool {
    guard let other else { return true }
    return (serial, at) == (other.serial, other.at)
      ? other.text.lexicographicallyPrecedes(text) : (serial, at) > (other.serial, other.at)
  }

  /// Why it cannot be used, in words that begin with the name; nil: it can.
  package static func flaw(of text: [UInt8], named name: String) -> String? {
    if text.count > longest { return "\(name): more than \(longest) bytes" }
    guard let text = Secret(text) else { return "\(name): out of memory" }
    let nobody = PolicyRequest(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    return PolicyFile(text, base: Policy(), nobody).problem.map { problem in
      var line = LogLine("")
      line.add(StoreTrouble.malformed(path: name, problem))
      return String(decoding: line.bytes, as: UTF8.self)
    }
  }
}

// MARK: the file

extension StoredPolicy {
  private static let head = """
    # Kept by sallyport-verifier(8): the policy of the fleet, as this verifier saw it last.
    version = 1

    """

  /// The whole file.
  func file(under key: FleetKey) throws(CryptoError) -> [UInt8] {
    file(hexadecimal(try seal(under: key)))
  }

  /// The same with a seal that is there.
  private func file(_ digits: [UInt8]) -> [UInt8] {
    let facts =
      "serial = \(serial)\nat = \(at)\nauthor = \(String(decoding: author, as: UTF8.self))\nseal = "
    return Array((Self.head + facts).utf8) + digits + [10, 10] + text
  }

  /// nil where it is no such file, or not sealed with this key.
  init?(file: [UInt8], under key: FleetKey) {
    guard file.starts(with: Self.head.utf8) else { return nil }
    let lines = file.dropFirst(Self.head.utf8.count).split(
      separator: 10, maxSplits: 5, omittingEmptySubsequences: false)
    guard lines.count == 6 else { return nil }
    func value(_ line: Int, of name: StaticString) -> String? {
      let start = bytes(of: name) + Array(" = ".utf8)
      return lines[line].starts(with: start)
        ? String(decoding: lines[line].dropFirst(start.count), as: UTF8.self) : nil
    }
    guard let serial = value(0, of: "serial").flatMap({ UInt64($0) }),
      let at = value(1, of: "at").flatMap({ Int64($0) }), let author = value(2, of: "author"),
      let digits = value(3, of: "seal")
    else { return nil }
    self.init(serial: serial, at: at, author: Array(author.utf8), text: Array(lines[5]))
    let spelled = Secret(Array(digits.utf8))
    guard let seal = spelled.flatMap({ $0.octets($0.count / 2, spelledIn: 0..<$0.count) }),
      isRight(seal, under: key), self.file(Array(digits.utf8)) == file
    else { return nil }
  }
}
