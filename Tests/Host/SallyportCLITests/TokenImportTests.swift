import Foundation
import TestSupport
import Testing

@testable import SallyportCLI

@Suite struct `Tokens of a list or a container` {
  private let bench = Bench()

  @Test func `of a container are decrypted by the reading of a key file that its MACs confirm`()
    throws
  {
    let file = bench.directory + ".key"
    defer { try? FileManager.default.removeItem(atPath: file) }
    let container = pathInSources("Tests/Vectors/tokens/key.pskc.xml")
    for (key, status, told) in [
      ("EjRWeJASNFZ4kBI0VniQEg==\n", 0, "The key has 16 bytes, read in base64.\n"),
      ("0x1234567890123456 7890123456789012\n", 0, "The key has 16 bytes, read in hexadecimal.\n"),
      ("EjRWeJASNFZ4kBI0VniQEw==\n", 65, "(read as 16 bytes in base64 and 24 bytes as they are)"),
    ] as [(String, Int32, String)] {
      try Data(key.utf8).write(to: URL(fileURLWithPath: file))
      let done = bench.run("import", "pskc", container, "--key-file", file, "--dry-run")
      #expect(done.status == status && (done.answer + done.aside).contains(told), "\(done.aside)")
    }
  }
}
