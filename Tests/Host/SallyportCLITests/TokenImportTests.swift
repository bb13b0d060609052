import Foundation
import TestSupport
import Testing

@testable import SallyportCLI

@Suite struct `Tokens of a list or a container` {
  private let bench = Bench()
  private let uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

  private func imported(_ options: String...) -> Bench.Outcome {
    let row = Act.types("77,3132333435363738393031323334353637383930\n")
    return bench.run(
      arguments: ["import", "csv", "-"] + options, on: FakeTerminal([row], isInteractive: false))
  }

  private func assign(_ script: [Act]) -> Bench.Outcome {
    bench.run(
      "token", "assign", "77", "alice", "--allow-missing",
      on: FakeTerminal(script, isInteractive: false))
  }

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

  @Test func `of another kind than was assumed say so by a code, which is not taken`() throws {
    let other = uri + "&period=60&digits=8&algorithm=SHA256"
    #expect(imported().status == 0)
    let code = Act.types(try uriCode(other, at: bench.now, steps: 0))
    let told = assign([code, code, .ends])
    #expect(told.status == 1 && told.answer.contains("A code has 6 digits."), "\(told.aside)")
    let kind = "It is right for TOTP with SHA-256, 8 digits, 60 s: "
    #expect(told.answer.contains(kind), "\(told.answer)")
    #expect(
      told.answer.contains("\n--period 60 --digits 8 --algorithm sha256.\n"), "\(told.answer)")
    #expect(bench.run("status", "alice", "--allow-missing").status == 66)
    #expect(bench.run("token", "forget", "77", "--yes").status == 0)
    let again = imported("--period", "60", "--digits", "8", "--algorithm", "sha256")
    #expect(again.answer.contains("Kind: TOTP with SHA-256, 8 digits, 60 s.\n"))
    #expect(assign([code]).status == 0)
  }
}
