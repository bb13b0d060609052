import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportImport

private let now = UnixTime(1_772_530_000)
private let step = UInt64(1_772_530_000 / 30)

@Suite struct `What is taken over from google-authenticator` {
  private func candidate(_ lines: String) throws -> Candidate {
    let text = try #require(Secret(Array("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\n\(lines)\n".utf8)))
    return try GoogleAuthenticatorFile.parse(text)
      .candidate(for: Array("alice".utf8), at: now)
  }

  @Test(
    arguments: [
      ("\" TOTP_AUTH\n\" DISALLOW_REUSE \(step - 3) \(step + 1) \(step)", step + 1),
      ("\" TOTP_AUTH\n\" DISALLOW_REUSE", nil),
      // Used by a clock that ran ahead: nobody's code of now.
      ("\" TOTP_AUTH\n\" DISALLOW_REUSE \(step - 3) \(step + 500)", step - 3),
      // One that cannot be read may have been the latest.
      ("\" TOTP_AUTH\n\" DISALLOW_REUSE \(step - 3) \(step - 2)x", step + 1),
      ("\" TOTP_AUTH\n\" DISALLOW_REUSE \(step - 3) -5", step + 1),
      // Reuse was allowed: the greatest that may have been accepted by now.
      ("\" TOTP_AUTH", step + 1), ("\" TOTP_AUTH\n\" WINDOW_SIZE 17", step + 8),
      ("\" TOTP_AUTH\n\" TIME_SKEW 2", step + 3), ("\" TOTP_AUTH\n\" TIME_SKEW -2", step + 1),
      ("\" HOTP_COUNTER 1", 0), ("\" HOTP_COUNTER 8", 7),
    ] as [(String, UInt64?)])
  func `counts as used what may have been used`(lines: String, wanted: UInt64?) throws {
    #expect(try candidate(lines).authenticator?.lastAccepted == wanted)
  }

  @Test(arguments: [
    ("\" TOTP_AUTH", [Remark.reuseAllowed]),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE", []),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE x", [Remark.reuseAllowed]),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE \(step)", [.lastStepCarried]),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE\n\" WINDOW_SIZE 11", []),
    (
      "\" TOTP_AUTH\n\" DISALLOW_REUSE\n\" WINDOW_SIZE 13", [.windowNarrowed(theirs: 6, ours: 5)]
    ),
    ("\" HOTP_COUNTER 8\n\" WINDOW_SIZE 11", [.counterCarried]),
    (
      "\" HOTP_COUNTER 8\n\" WINDOW_SIZE 21",
      [.counterCarried, .windowNarrowed(theirs: 20, ours: 10)]
    ),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE\n\" TIME_SKEW 5", []),
    ("\" TOTP_AUTH\n\" DISALLOW_REUSE\n\" TIME_SKEW -40", [.clockOff(steps: -40)]),
    (
      "\" TOTP_AUTH\n\" DISALLOW_REUSE\n12345678\nx\n87654321",
      [.scratchCodes(1), .deadScratchCodes(1)]
    ),
  ]) func `comes with remarks`(lines: String, wanted: [Remark]) throws {
    #expect(try candidate(lines).remarks == wanted)
  }

  @Test func `has as many scratch codes as a set can have`() throws {
    let many = (0..<40).map { "\(10_000_000 + $0)" }.joined(separator: "\n")
    let found = try candidate("\" TOTP_AUTH\n\" DISALLOW_REUSE\n\(many)")
    #expect(found.scratchCodes.count == 32)
    #expect(found.remarks == [.scratchCodes(32), .scratchCodesDropped(8)])
  }
}

@Suite struct `What is taken over from pam_oath` {
  /// `at`: the step around which the last code was used.
  private func taken(
    _ type: String, _ rest: String, at step: UInt64? = nil, digits: Digits? = nil,
    now: UnixTime = UnixTime(100_000)
  ) throws -> (ImportedAuthenticator, [Remark]) {
    let text = "\(type) alice - 3132333435363738393031323334353637383930 \(rest)"
    let bytes = try #require(Secret(Array(text.utf8)))
    let line = try #require(UsersOath(bytes).lines.first)
    var remarks: [Remark] = []
    let one = try line.token.get().authenticator(
      preferring: digits, at: now, step.map { [UnixTime(Int64($0) * 30 + 7)] } ?? [], &remarks)
    return (one, remarks)
  }

  @Test(
    arguments: [
      ("", nil), ("0", nil), ("5", 4),  // no last code: the counter is that of the next one
      ("0 755224", 0), ("5 254676", 5), ("5 -", 4), ("5 111111", 5),
    ] as [(String, UInt64?)])
  func `is the counter of the last code, or of the next`(rest: String, wanted: UInt64?) throws {
    let (one, remarks) = try taken("HOTP", rest)
    #expect(one.lastAccepted == wanted && remarks == [.counterCarried])
  }

  @Test func `is refused where the counter has come to its end`() throws {
    #expect(throws: TakeoverError.problem(.counter)) {
      try taken("HOTP", "18446744073709551615 755224")
    }
  }

  /// Now is step 3333.
  @Test(
    arguments: [
      ("0 287922", 5, 6, Remark.lastStepCarried), ("0 755224", 5, 0, .lastStepCarried),
      ("0 254676", 60, 5, .lastStepCarried),
      // Not around its use, nor around now: the step of its use.
      ("0 254676", 900, 900, .lastCodeNotFound), ("0 12", 900, 900, .lastCodeNotFound),
      // Its use lies in the future: no later than now.
      ("0 254676", 9000, 3333, .lastCodeNotFound),
    ] as [(String, UInt64, UInt64, Remark)])
  func `is the step of the last code around its use`(
    rest: String, use: UInt64, wanted: UInt64, remark: Remark
  ) throws {
    let (one, remarks) = try taken("HOTP/T30", rest, at: use)
    #expect(one.lastAccepted == wanted && remarks == [remark])
  }

  @Test func `is the step around now where the zone of its use was another`() throws {
    let (one, _) = try taken("HOTP/T30", "0 287922", at: 2000, now: UnixTime(200))
    #expect(one.lastAccepted == 6)
    let (ahead, remarks) = try taken("HOTP/T30", "0 287922", at: 5, now: UnixTime(0))
    #expect(ahead.lastAccepted == 6 && remarks == [.aheadOfClock])
  }

  @Test func `has no place where nothing was used`() throws {
    let (one, remarks) = try taken("HOTP/T30", "")
    #expect(one.lastAccepted == nil && remarks.isEmpty)
  }

  /// 94287082 is RFC 6238's code of eight digits at step 1; 84755224 RFC 4226's of counter 0.
  @Test(arguments: [
    ("HOTP/T30", "0 94287082", Digits?.none, Digits.eight),
    ("HOTP/T30/6", "0 94287082", nil, .eight),
    ("HOTP/T30", "0 287082", nil, .six), ("HOTP/T30", "0 287082", .eight, .six),
    ("HOTP/T30/8", "", .six, .eight), ("HOTP/T30", "", .eight, .eight), ("HOTP/T30", "", nil, .six),
    ("HOTP", "0 84755224", nil, .eight), ("HOTP", "0 84755225", nil, .six),
    ("HOTP", "", .seven, .seven),
  ]) func `has the digits of its last code, else of the line, else those asked for`(
    type: String, rest: String, preferred: Digits?, wanted: Digits
  ) throws {
    let (one, _) = try taken(type, rest, at: 1, digits: preferred)
    #expect(one.parameters.digits == wanted)
  }
}
