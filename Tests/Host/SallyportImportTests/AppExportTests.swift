import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportImport

@Suite struct `An export of an app` {
  private static let directory = pathInSources("Tests/Vectors/exports")

  private func content(_ name: String) throws -> Secret {
    let bytes = try #require(FileManager.default.contents(atPath: "\(Self.directory)/\(name)"))
    return try #require(Secret([UInt8](bytes)))
  }

  /// What is read, in the form of exports.txt.
  private func lines(_ bytes: Secret) -> [String] {
    do throws(AppExport.Failure) {
      let name = Array("alice".utf8)
      let plain = withPlainBlanks(bytes, keepsLines: true) ?? bytes
      let found = try AppExport.read(bytes)?.candidates(for: name)
      return (found ?? URIList(plain, isOneUsers: true).candidates(for: name)).map(line)
    } catch {
      switch error {
      case .sealed(let name, _): return ["sealed | \(name)"]
      case .line(let fault): return ["line \(fault.line) | \(fault.problem.text)"]
      case .picture: return ["picture"]
      case .unknown: return ["unknown"]
      case .tooLong: return ["too long"]
      }
    }
  }

  private func line(_ number: Int, _ candidate: Candidate) -> String {
    if let obstacle = candidate.obstacle { return "refused | \(obstacle.text)" }
    guard let one = candidate.authenticator else {
      return candidate.remarks.map { "\(number) | skipped | \($0.text)" }.joined()
    }
    let parameters = one.parameters
    let (type, step): (String, String)
    switch parameters.type {
    case .totp(let period): (type, step) = ("totp", "\(period)")
    case .hotp: (type, step) = ("hotp", "\((one.lastAccepted ?? 0) + 1)")
    }
    let key = (0..<one.secret.count).map { String(format: "%02x", one.secret[$0]) }.joined()
    return "\(number) | \(one.name?.text ?? "-") | "
      + "\(type) \(parameters.digits.rawValue) \(parameters.algorithm.name) \(step) | \(key)"
  }

  @Test func `of each app is read, and a sealed one named`() throws {
    var wanted: [String: [String]] = [:]
    for line in try vectorLines("exports.txt") {
      let words = line.split(separator: " | ", maxSplits: 1).map(String.init)
      wanted[words[0], default: []].append(words[1])
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.directory)
    #expect(Set(names) == Set(wanted.keys))
    for name in names {
      let found = lines(try content(name))
      #expect(found == wanted[name], "\(name)")
    }
  }

  @Test func `is refused where it is cut short, but for what ends it`() throws {
    for name in [
      "aegis.json", "2fas.2fas", "andotp.json", "freeotp-plus.json", "bitwarden.json",
      "keepassxc.xml",
    ] {
      let whole = try content(name)
      let end = (0..<whole.count).last { whole[$0] > 0x20 } ?? 0
      for length in stride(from: 4, through: end, by: 61) {
        let part = try #require(whole.slice(0..<length))
        let told = lines(part)
        #expect(told.count == 1 && told[0].hasPrefix("line "), "\(name) at \(length): \(told)")
      }
    }
  }

  @Test func `has its faults named by the entry, and nothing of a secret`() throws {
    let entry = { (more: String) in "[{\"type\":\"TOTP\",\(more)}]" }
    let cases = [
      (entry("\"secret\":\"GEZDGNB0\""), "refused | entry 1: the secret is not base32"),
      (entry("\"secret\":\"\""), "refused | entry 1: the secret has 0 bytes"),
      (entry("\"secret\":5"), "refused | entry 1: the secret is not base32"),
      (
        entry("\"digits\":\"six\",\"secret\":\"GEZDGNBV\""),
        "refused | entry 1: the value of digits is not supported"
      ),
      (
        entry("\"digits\":10,\"secret\":\"GEZDGNBV\""),
        "1 | skipped | entry 1 left out: its codes have 10 digits, expected 6 to 8"
      ),
      (
        entry("\"period\":5,\"secret\":\"GEZDGNBV\""),
        "1 | skipped | entry 1 left out: the time step is 5 s, expected 15 to 300"
      ),
      // A name that may be a secret, and one that would move the cursor, are not shown.
      (
        entry("\"secret\":\"GEZDGNBV\",\"label\":\"GEZDGNBVGY3TQOJQ\""),
        "1 | - | totp 6 SHA1 30 | 3132333435"
      ),
      (
        entry("\"secret\":\"GEZDGNBV\",\"label\":\"a\\u001b[2J\""),
        "1 | - | totp 6 SHA1 30 | 3132333435"
      ),
      (
        entry("\"secret\":\"GEZDGNBV\",\"label\":\"\\ud83d\\ude00 \\u00e9\""),
        "1 | 😀 é | totp 6 SHA1 30 | 3132333435"
      ),
      ("{\"some\":[1,2.5e3,null,false]}", "unknown"), ("[]", "unknown"),
      ("{\"a\":\"b\nc\"}", "line 1 | \(SourceProblem.json.text)"),
      (
        "[" + String(repeating: "0,", count: 1_000_001) + "0]",
        "line 1 | \(SourceProblem.json.text)"
      ),
      (String(repeating: "[", count: 10_000), "line 1 | \(SourceProblem.json.text)"),
      ("<!DOCTYPE x><KeePassFile/>", "line 1 | \(SourceProblem.xml.text)"),
      ("name,TOTP\nx\n", "line 2 | \(SourceProblem.columns.text)"),
    ]
    for (text, wanted) in cases {
      #expect(lines(try #require(Secret(Array(text.utf8)))) == [wanted], "\(text.prefix(60))")
    }
  }

  @Test func `as pictures of Google Authenticator is well formed, or refused`() throws {
    // The example of those who first described the form.
    let example =
      "otpauth-migration://offline?data="
      + "CjEKCkhlbGxvId6tvu8SGEV4YW1wbGU6YWxpY2VAZ29vZ2xlLmNvbRoHRXhhbXBsZTAC"
    let read = { (text: String) in lines(Secret(Array(text.utf8)) ?? Secret(count: 0)!) }
    #expect(
      read(example) == ["1 | Example:alice@google.com | totp 6 SHA1 30 | 48656c6c6f21deadbeef"])
    #expect(read("\u{feff}\(example)\u{a0}\r\n") == read(example))
    for bad in [
      "otpauth-migration://offline", "otpauth-migration://offline?data=C", "\(example.dropLast(4))",
    ] {
      #expect(read(bad).count == 1 && read(bad)[0].hasPrefix("refused | line 1: "), "\(bad)")
    }
  }
}
