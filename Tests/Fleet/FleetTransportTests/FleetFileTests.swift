import Foundation
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

@Suite struct `The file of a fleet` {
  private let pins = [String(repeating: "ab", count: 32), String(repeating: "0f", count: 32)]

  private func parse(_ text: String) throws(FleetFileFault) -> FleetFile {
    try FleetFile.parse(Array(text.utf8), path: "/fleet.conf")
  }

  private func fault(_ text: String) -> FleetFileFault? {
    do throws(FleetFileFault) {
      _ = try parse(text)
      return nil
    } catch {
      return error
    }
  }

  private func whole() -> FleetFile {
    FleetFile(
      host: "web-1.example.org", enrolls: true,
      verifiers: ["192.0.2.1:7353", "[2001:db8::1]:99"].compactMap { VerifierAddress($0) },
      pins: pins.compactMap { Pin(hex: $0) })
  }

  @Test func `is read as it was written`() throws {
    var file = whole()
    #expect(try parse(file.written()) == file)
    file.enrolls = false
    #expect(try parse(file.written()) == file)
  }

  @Test func `may have comments, blank lines and blanks`() throws {
    let text = """
      # a comment

        host=web-1.example.org\t
      enrolls = yes
      verifier = 192.0.2.1
      \tverifier = [2001:db8:0::1]:99
      pin = \(pins[0].uppercased())
      pin = \(pins[1])
      """
    #expect(try parse(text) == whole())
  }

  @Test func `that is garbage is refused with the line and what to do`() throws {
    let good = whole().written()
    let faults: [(String, Int?, FleetFileFault.Reason)] = [
      ("", nil, .missing("host")), ("host = a\n", nil, .missing("enrolls")),
      ("host = a\nenrolls = no\npin = \(pins[0])\n", nil, .missing("verifier")),
      ("host = a\nenrolls = no\nverifier = 192.0.2.1\n", nil, .missing("pin")),
      (good + "x\n", 8, .notASetting), (good + "\u{1}\n", 8, .notASetting),
      (good + "host = ä\n", 8, .notASetting), (good + "host = a\r\n", 8, .notASetting),
      (good + "= yes\n", 8, .unknownKey("")), (good + "Host = a\n", 8, .unknownKey("Host")),
      (good + "host = b\n", 8, .twice("host")), (good + "enrolls = no\n", 8, .twice("enrolls")),
      (good + "verifier = 192.0.2.1\n", 8, .twice("verifier")),
      (good + "pin = \(pins[1])\n", 8, .twice("pin")),
      (good + "pin = \(String(repeating: "00", count: 32))\n", 8, .tooMany("pin")),
      ("host = a b\n", 1, .notAName), ("host =\n", 1, .notAName),
      ("host = \(String(repeating: "a", count: 254))\n", 1, .notAName),
      ("enrolls = YES\n", 1, .notYesOrNo), ("enrolls =\n", 1, .notYesOrNo),
      ("verifier = verifier.example.org\n", 1, .notAnAddress),
      ("pin = \(pins[0])0\n", 1, .notAPin), ("pin = \(pins[0].dropLast())g\n", 1, .notAPin),
      ((1...9).map { "verifier = 192.0.2.\($0)\n" }.joined(), 9, .tooMany("verifier")),
    ]
    for (text, line, reason) in faults {
      let found = try #require(fault(text), "\(text)")
      #expect((found.line, found.reason) == (line, reason), "\(text)")
      #expect(found.text.hasPrefix(line.map { "/fleet.conf:\($0): " } ?? "/fleet.conf: "))
    }
  }

  @Test func `is root's or one's own, and nobody else's to change`() throws {
    let directory = try TemporaryDirectory()
    func read() throws(FleetFileFault) -> FleetFile {
      try FleetFile.read(in: directory.path)
    }
    func reason() -> FleetFileFault.Reason? {
      do throws(FleetFileFault) {
        _ = try read()
        return nil
      } catch { return error.reason }
    }
    let path = directory.path + "/" + FleetFile.name
    #expect(reason() == .file(.absent))
    try whole().written().write(toFile: path, atomically: false, encoding: .utf8)
    // SAFETY: the C strings live for the calls.
    unsafe chmod(path, 0o644)
    #expect(try read() == whole())
    unsafe chmod(path, 0o664)
    #expect(reason() == .file(.unsafe))
    unsafe chmod(path, 0o644)
    let long = String(repeating: "#", count: 16_385)
    try long.write(toFile: path, atomically: false, encoding: .utf8)
    #expect(reason() == .file(.damaged))
    unsafe unlink(path)
    unsafe symlink("/etc/passwd", path)
    #expect(reason() == .file(.system("open", errno: ELOOP)))
    unsafe unlink(path)
    unsafe mkdir(path, 0o755)
    #expect(reason() == .file(.unsafe))
  }
}

@Suite struct `The address of a verifier` {
  @Test(arguments: [
    ("192.0.2.1:7353", "192.0.2.1:7353"), ("192.0.2.1", "192.0.2.1:7353"),
    ("[2001:DB8:0:0::1]:1", "[2001:db8::1]:1"), ("[::1]", "[::1]:7353"),
    ("0.0.0.0:65535", "0.0.0.0:65535"),
  ]) func `is numeric, with a port`(_ text: String, _ canonical: String) throws {
    let address = try #require(VerifierAddress(text))
    #expect(address.text == canonical)
    #expect(VerifierAddress(canonical) == address)
  }

  @Test(arguments: [
    "", ":", ":7353", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:+1",
    "192.0.2.1:07353", "192.0.2.1 :1", "192.0.2.256:1", "192.0.2:1", "host:1", "[::1", "[::1]:",
    "[::1]x", "[192.0.2.1]:1", "2001:db8::1", "[fe80::1%eth0]:1", "[]:1", "192.0.2.1:1\0",
    "192.0.2.1\0:1",
  ]) func `is nothing else`(_ text: String) {
    #expect(VerifierAddress(text) == nil)
  }
}
