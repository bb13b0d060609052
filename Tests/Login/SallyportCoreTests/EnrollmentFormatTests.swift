import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `An enrollment file` {
  /// The example of docs/enrollment-format.md, line by line; made by another program (Python).
  static func example() throws -> [String] {
    try textOfSources("Tests/Vectors/enrollment.txt")
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  private func read(_ lines: [String]) throws -> Enrollment {
    try Enrollment.read(secret(lines.joined(separator: "\n")))
  }

  private func problem(_ text: [UInt8]) throws -> SettingsError? {
    let text = try secret(text)
    do throws(SettingsError) {
      _ = try Enrollment.read(text)
      return nil
    } catch {
      return error
    }
  }

  @Test func `is read as the documented example says`() throws {
    let found = try read(Self.example())
    #expect(found.id == 0x9f3c_5a7e_1b2d_4f60)
    #expect(found.user.bytes == Array("alice".utf8))
    #expect(found.uid == 1000)
    #expect(found.created == UnixTime(1_772_528_400))
    #expect(found.authenticators.map(\.id) == [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210])
    #expect(found.authenticators.map(\.name.text) == ["phone", "Schlüssel 2"])
    #expect(
      try found.authenticators.map(\.parameters)
        == [parameters(), parameters(.hotp, .sha256, .eight)])
    #expect(found.authenticators.map(\.initialLastAccepted) == [59_084_280, nil])
    #expect(
      try found.authenticators.map { bytes($0.secret) }
        == [bytes(SallyportCoreTests.example()), bytes(SallyportCoreTests.example(.sha256))])
    #expect(
      try found.backupCodes
        == backupCodes(["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"], id: 0x5ca1_ab1e_0ddb_a115))
  }

  @Test func `is written as the documented example is`() throws {
    let written = try #require(read(Self.example()).written())
    #expect(try text(written) == Self.example().joined(separator: "\n"))
  }

  @Test func `is in the documentation as it is in the example`() throws {
    let document = try textOfSources("docs/enrollment-format.md")
    #expect(try document.contains(Self.example().joined(separator: "\n")))
  }

  @Test func `is read as it was written, whatever it holds`() throws {
    var random = Seeded(10)
    for _ in 0..<500 {
      let enrollment = try random.enrollment()
      let written = try #require(enrollment.written())
      let again = try Enrollment.read(written)
      #expect(again.facts == enrollment.facts)
      #expect(try text(#require(again.written())) == text(written))
    }
  }

  @Test func `may have other blanks, comments, an order of its own and no line feed at its end`()
    throws
  {
    var lines = try Self.example()
    lines.swapAt(1, 4)
    lines.swapAt(8, 15)
    lines[2] = "\t user=alice  \t"
    lines[6] = "   # a comment = with [an] = sign"
    lines[7] = "  [ authenticator ]  "
    lines.removeLast()
    #expect(try read(lines).facts == read(Self.example()).facts)
  }

  /// A number of 0 is a line that is put in at the end; an empty text leaves the line out.
  @Test(
    arguments: [
      (2, "version = 2", 2, .value("version", wanted: "a whole number in its range")),
      (2, "version = one", 2, .value("version", wanted: "a whole number in its range")),
      (2, "version = 01", 2, .value("version", wanted: "a whole number in its range")),
      (4, "uid = 01000", 4, .value("uid", wanted: "a whole number in its range")),
      (14, "digits = 06", 14, .value("digits", wanted: "a whole number in its range")),
      (13, "algorithm = sha1", 13, .value("algorithm", wanted: "SHA1, SHA256 or SHA512")),
      (13, "algorithm = SHA-1", 13, .value("algorithm", wanted: "SHA1, SHA256 or SHA512")),
      (16, "secret = GEZD GNBV GY3T QOJQ", 16, .value("secret", wanted: "base32 (RFC 4648)")),
      (16, "secret = GEZDGNBV\tGY3TQOJQ", 16, .value("secret", wanted: "base32 (RFC 4648)")),
      (16, "secret = GEZD-GNBV-GY3T-QOJQ", 16, .value("secret", wanted: "base32 (RFC 4648)")),
      (2, "", 1, .missing("version")), (3, "", 1, .missing("user")), (4, "", 1, .missing("uid")),
      (5, "", 1, .missing("id")), (6, "", 1, .missing("created")),
      (3, "user =", 3, .value("user", wanted: "a login name")),
      (3, "user = ../bob", 3, .value("user", wanted: "a login name")),
      (3, "user = -bob", 3, .value("user", wanted: "a login name")),
      (3, "user = a\0b", 3, .value("user", wanted: "a login name")),
      (4, "uid = -1", 4, .value("uid", wanted: "a whole number in its range")),
      (4, "uid = 4294967295", 4, .value("uid", wanted: "a whole number in its range")),
      (4, "uid = None", 4, .value("uid", wanted: "a whole number in its range")),
      (5, "id = 0000000000000000", 5, .value("id", wanted: "16 hexadecimal digits, not all 0")),
      (5, "id = 9f3c", 5, .value("id", wanted: "16 hexadecimal digits, not all 0")),
      (5, "id = 9f3c5a7e1b2d4f6g", 5, .value("id", wanted: "16 hexadecimal digits, not all 0")),
      (
        6, "created = 9223372036854775808", 6,
        .value("created", wanted: "a whole number in its range")
      ),
      (6, "created = -1", 6, .value("created", wanted: "a whole number in its range")),
      (6, "created = 1e9", 6, .value("created", wanted: "a whole number in its range")),
      (5, "user = bob", 5, .duplicateKey), (5, "name = phone", 5, .unknownKey),
      (5, "User = bob", 5, .unknownKey), (5, "algorithm = SHA1", 5, .unknownKey),
      (5, "id 9f3c5a7e1b2d4f60", 5, .notASetting), (5, "= 5", 5, .notASetting),
      (5, "[authenticator", 5, .notASetting), (5, "[]", 5, .notASetting),
      (5, String(repeating: "k", count: 65) + " = 5", 5, .notASetting), (5, "\0", 5, .notASetting),
      (8, "[authenticators]", 8, .unknownSection), (8, "[Authenticator]", 8, .unknownSection),
      (8, "[ ]", 8, .unknownSection), (8, "[end]", 9, .unknownKey),
      (9, "", 8, .missing("id")), (10, "", 8, .missing("name")), (11, "", 8, .missing("type")),
      (12, "", 8, .missing("period")), (13, "", 8, .missing("algorithm")),
      (14, "", 8, .missing("digits")), (15, "", 8, .missing("last_accepted")),
      (16, "", 8, .missing("secret")), (17, "", 8, .missing("created")),
      (9, "name = phone", 10, .duplicateKey), (9, "salt = 00", 9, .unknownKey),
      (9, "counter = 5", 9, .unknownKey), (9, "version = 1", 9, .unknownKey),
      (10, "name =", 10, .value("name", wanted: "1 to 64 bytes of printable UTF-8")),
      (10, "name = a\u{202e}b", 10, .value("name", wanted: "1 to 64 bytes of printable UTF-8")),
      (
        10, "name = " + String(repeating: "é", count: 33), 10,
        .value("name", wanted: "1 to 64 bytes of printable UTF-8")
      ),
      (11, "type = TOTP", 11, .value("type", wanted: "totp or hotp")),
      (11, "type = hotp", 12, .value("period", wanted: "totp")),
      (12, "period = 14", 12, .value("period", wanted: "a whole number in its range")),
      (12, "period = 301", 12, .value("period", wanted: "a whole number in its range")),
      (12, "period = 30s", 12, .value("period", wanted: "a whole number in its range")),
      (13, "algorithm = MD5", 13, .value("algorithm", wanted: "SHA1, SHA256 or SHA512")),
      (14, "digits = 5", 14, .value("digits", wanted: "a whole number in its range")),
      (14, "digits = 9", 14, .value("digits", wanted: "a whole number in its range")),
      (14, "digits = 262", 14, .value("digits", wanted: "a whole number in its range")),
      (
        15, "last_accepted = 18446744073709551616", 15,
        .value("last_accepted", wanted: "a whole number in its range")
      ),
      (15, "last_accepted =", 15, .value("last_accepted", wanted: "a whole number in its range")),
      (16, "secret =", 16, .value("secret", wanted: "1 to 128 bytes in base32")),
      (
        16, "secret = " + String(repeating: "A", count: 207), 16,
        .value("secret", wanted: "1 to 128 bytes in base32")
      ),
      (16, "secret = GEZDGNBVGY3TQOJ1", 16, .value("secret", wanted: "base32 (RFC 4648)")),
      (16, "secret = GEZDGNBVGY3TQOJQG", 16, .value("secret", wanted: "base32 (RFC 4648)")),
      (20, "id = 0123456789abcdef", 19, .notUnique("id")),
      (21, "name = phone", 19, .notUnique("name")),
      (29, "[authenticator]", 31, .unknownKey),
      (30, "", 29, .missing("id")), (31, "", 29, .missing("salt")),
      (31, "salt = 0001", 31, .value("salt", wanted: "32 hexadecimal digits")),
      (32, "code = 00", 32, .value("code", wanted: "64 hexadecimal digits")),
      (32, "code =", 32, .value("code", wanted: "64 hexadecimal digits")),
      (
        32, "code = " + String(repeating: "0", count: 63) + "g", 32,
        .value("code", wanted: "64 hexadecimal digits")
      ),
      (
        32, "code = g" + String(repeating: "0", count: 63), 32,
        .value("code", wanted: "64 hexadecimal digits")
      ),
      (33, "scratch_code = 00", 33, .value("scratch_code", wanted: "64 hexadecimal digits")),
      (10, "scratch_code = 00", 10, .unknownKey),
      (33, "salt = 00", 33, .duplicateKey), (33, "used = 1", 33, .unknownKey),
      (
        34, "[backup_codes]\nid = 5ca1ab1e0ddba116\nsalt = 000102030405060708090a0b0c0d0e0f", 34,
        .tooMany("backup_codes")
      ),
      (35, "", 29, .missing("[end]")), (35, "# [end]", 29, .missing("[end]")),
      (35, "[End]", 35, .unknownSection),
      (0, "[end]", 37, .unknownSection), (0, "[authenticator]", 37, .unknownSection),
      (0, "version = 1", 37, .unknownKey),
    ] as [(Int, String, Int, SettingsError.Problem)])
  func `is refused, with the line and the reason`(
    number: Int, line: String, wantedLine: Int, wanted: SettingsError.Problem
  ) throws {
    var lines = try Self.example()
    if number == 0 {
      lines.append(line)
    } else {
      lines[number - 1] = line
    }
    let text = lines.joined(separator: "\n")
    #expect(try problem(Array(text.utf8)) == SettingsError(line: wantedLine, wanted))
  }

  @Test func `has at most 8 authenticators, 32 codes and 64 KiB, and at least one authenticator`()
    throws
  {
    let lines = try Self.example()
    let nine = (1...9).flatMap { number in
      ["[authenticator]", "id = 000000000000000\(number)", "name = a\(number)"] + lines[10..<17]
    }
    let head = Array(lines[..<7])
    #expect(try read(head + nine[..<80] + ["[end]"]).authenticators.count == 8)
    #expect(
      try problem(Array((head + nine + ["[end]"]).joined(separator: "\n").utf8))
        == SettingsError(line: 88, .tooMany("authenticator")))
    let codes = [String](repeating: lines[31], count: 33)
    let most = Array(lines[..<31] + codes[..<32] + ["[end]"])
    #expect(try read(most).backupCodes?.digests.count == 32)
    let more = Array(lines[..<31] + codes + ["[end]"])
    #expect(
      try problem(Array(more.joined(separator: "\n").utf8))
        == SettingsError(line: 29, .tooMany("code")))
    let scratch = [String](repeating: "scratch_" + lines[31], count: 33)
    let both = try read(Array(lines[..<31] + codes[..<32] + scratch[..<32] + ["[end]"])).backupCodes
    #expect(both?.count == 64 && both?.scratchDigests.count == 32)
    #expect(
      try problem(Array((lines[..<31] + scratch + ["[end]"]).joined(separator: "\n").utf8))
        == SettingsError(line: 29, .tooMany("scratch_code")))
    #expect(
      try problem(Array((head + ["[end]"]).joined(separator: "\n").utf8))
        == SettingsError(line: 1, .missing("authenticator")))
    let text = Array(lines.joined(separator: "\n").utf8)
    let full = text + [UInt8](repeating: 0x0a, count: 65536 - text.count)
    #expect(try problem(full) == nil)
    #expect(try problem(full + [0x0a]) == SettingsError(line: 1, .textTooLong))
    #expect(try problem([]) == SettingsError(line: 1, .missing("[end]")))
  }

  @Test(arguments: [
    [UInt8](repeating: 0, count: 65536), [UInt8](repeating: 0x41, count: 65536),
    [UInt8](repeating: 0x0a, count: 65536), [UInt8](repeating: 0x5b, count: 65536),
    [UInt8](repeating: 0x3d, count: 65536), [UInt8](repeating: 0x20, count: 65536),
    Array("version = 1\n[backup_codes]\n".utf8)
      + Array([[UInt8]](repeating: Array("code=\n".utf8), count: 10_000).joined()),
  ]) func `of 64 KiB of one kind is refused`(text: [UInt8]) throws {
    #expect(try problem(text) != nil)
  }

  /// What lost its tail must not be an enrollment with fewer authenticators or codes: their state
  /// would be forgotten, and used codes would be good again.
  @Test func `cut off anywhere is refused`() throws {
    var random = Seeded(11)
    for round in 0..<4 {
      let whole =
        round == 0
        ? Array(try Self.example().joined(separator: "\n").utf8)
        : bytes(try #require(random.enrollment().written()))
      for length in 0..<whole.count - 1 {
        #expect(try problem(Array(whole.prefix(length))) != nil, "\(length) of \(whole.count)")
      }
      #expect(try problem(Array(whole.dropLast())) == nil)
    }
  }

  @Test func `with any one byte replaced keeps all rules or is refused`() throws {
    let whole = Array(try Self.example().joined(separator: "\n").utf8)
    var refused = 0
    for place in whole.indices {
      for byte in [0, 0x0a, 0x20, 0x23, 0x3d, 0x5b, 0x30, 0x7f, 0xff, whole[place] ^ 1] {
        var text = whole
        text[place] = byte
        refused += try isRefusedOrKeepsAllRules(text) ? 1 : 0
      }
    }
    #expect(refused > whole.count * 5)
  }

  @Test func `mutated at random keeps all rules or is refused`() throws {
    var random = Seeded(12)
    let wholes = try (0..<200).map { _ in bytes(try #require(random.enrollment().written())) }
      .filter { $0.count < 1500 }
    var refused = 0
    for _ in 0..<20_000 {
      refused += try isRefusedOrKeepsAllRules(random.mutated(random.pick(wholes))) ? 1 : 0
    }
    #expect((10_000..<20_000).contains(refused), "\(refused)")
  }

  private func isRefusedOrKeepsAllRules(_ text: [UInt8]) throws -> Bool {
    let lines = text.count { $0 == 0x0a } + 1
    let text = try secret(text)
    do throws(SettingsError) {
      let found = try Enrollment.read(text)
      #expect(found.keepsAllRules)
      return false
    } catch {
      #expect((1...lines).contains(error.line))
      return true
    }
  }
}

extension Enrollment {
  /// Everything but the secrets, which compare as objects.
  var facts: [String] {
    let authenticators = authenticators.map {
      "\($0.id) \($0.name.bytes) \($0.parameters) \(bytes($0.secret)) "
        + "\(String(describing: $0.initialLastAccepted)) \($0.created)"
    }
    let codes = backupCodes.map { "\($0.id) \($0.salt) \($0.digests)" } ?? "none"
    return ["\(id) \(user.bytes) \(String(describing: uid)) \(created)", codes] + authenticators
  }

  /// What docs/enrollment-format.md promises of a file that is accepted.
  var keepsAllRules: Bool {
    let names = authenticators.map(\.name.bytes)
    let codes = backupCodes?.digests ?? []
    let scratch = backupCodes?.scratchDigests ?? []
    return id != 0 && (1...8).contains(authenticators.count)
      && UserName(user.bytes) == user && uid != UInt32.max && created.seconds >= 0
      && Set(names).count == names.count && Set(authenticators.map(\.id)).count == names.count
      && authenticators.allSatisfy(\.keepsAllRules)
      && codes.count <= 32 && scratch.count <= 32
      && (codes + scratch).allSatisfy { $0.count == 32 }
      && backupCodes.map { $0.id != 0 && $0.salt.count == 16 } ?? true
  }
}

extension Authenticator {
  fileprivate var keepsAllRules: Bool {
    let period: ClosedRange<UInt32>? =
      switch parameters.type {
      case .totp(let period): period...period
      case .hotp: nil
      }
    return id != 0 && Label(name.bytes) == name && (1...128).contains(secret.count)
      && created.seconds >= 0 && period.map { $0.clamped(to: 15...300) == $0 } ?? true
  }
}
