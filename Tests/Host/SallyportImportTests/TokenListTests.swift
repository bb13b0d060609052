import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@testable import SallyportImport

@Suite struct `A list of tokens` {
  /// The secret of the RFCs in both forms, and another one.
  private let hex = "3132333435363738393031323334353637383930"
  private let base32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

  private func list(
    _ text: String, in form: SecretForm? = nil, _ columns: String? = nil,
    standard: CodeParameters = .standard
  ) throws -> TokenList {
    try TokenList(
      secret(text), in: form, columns.flatMap { TokenColumn.list($0) }, standard: standard)
  }

  private func told(_ list: TokenList) -> [String] {
    list.tokens.map { one in
      let kind =
        switch one.parameters.type {
        case .totp(let period): "totp \(period)"
        case .hotp: "hotp \(one.lastAccepted.map { "\($0)" } ?? "-")"
        }
      let user = one.user.map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
      return "\(one.line) \(one.serial.text) \(kind) \(one.parameters.digits.rawValue)\(user)"
    }
  }

  @Test(arguments: [
    (
      "azure.csv",
      ["2 1234567 totp 30 6 alice@example.org", "3 1234568 totp 60 6 bob@example.org"], 0
    ),
    ("feitian.txt", ["1 2600109990001 totp 30 6", "2 2600109990002 totp 30 6"], 0),
    ("token2.csv", ["2 86543210 totp 30 6", "3 86543211 totp 30 6"], 0),
    ("protectimus.csv", ["2 PT0000001 totp 30 6", "3 PT0000002 totp 30 6"], 0),
    ("yubico-traditional.csv", ["2 508326 hotp - 6", "4 1382042 hotp 48 8"], 2),
    ("yubico.csv", ["1 508326 hotp - 6", "3 1382042 hotp 48 6"], 2),
    (
      "oath.csv",
      [
        "1 Token001 totp 30 6", "2 Token002 totp 30 8", "3 Token003 hotp 4 6",
        "4 Token004 totp 60 6",
      ], 0
    ),
  ]) func `is read as its vendor writes it`(name: String, wanted: [String], leftOut: Int) throws {
    let list = try list(try textOfSources("Tests/Vectors/tokens/\(name)"))
    #expect(told(list) == wanted)
    #expect(list.leftOut == leftOut && list.headLine == nil)
    let assumed = list.tokens[0].assumed.map(\.rawValue).joined(separator: " ")
    #expect(assumed == Self.assumed[name] ?? "type period digits algorithm")
    #expect(bytes(list.tokens[0].secret) == Array("12345678901234567890".utf8))
  }

  private static let assumed = [
    "azure.csv": "type digits algorithm", "yubico-traditional.csv": "", "yubico.csv": "digits",
  ]

  @Test func `of Yubico's tool is refused where a key types an identifier, or has no number`() {
    let log = "OATH-HOTP,x,1,%,,\(hex),,,0,0,0,6,0,0,0,0,0,0\n"
    for (text, told) in [
      (log.replacing("%", with: "ubnu00112233"), "line 1, column 4: the key types"),
      (
        log.replacing("%", with: ""), "line 1, column 4: no serial number: write that of the key"
      ),
      (
        "7,,0,\(hex),,2026-11-28T08:41:07,\n8,ubnu00112233,0,\(hex),,2026-11-28T08:41:07,\n",
        "line 2, column 2: the key types"
      ),
    ] {
      let error = #expect(throws: TokenListError.self) { try self.list(text) }
      guard case .problems(let problems) = error else {
        Issue.record("\(text)")
        continue
      }
      #expect(problems.count == 1 && problems[0].told.hasPrefix(told), "\(problems)")
    }
  }

  @Test func `has what the line does not say from the options`() throws {
    let standard = try #require(
      CodeParameters(type: .totp(period: 60), algorithm: .sha256, digits: .eight))
    let token = try list("1,\(hex)\n", standard: standard).tokens[0]
    #expect(token.parameters == standard)
    #expect(token.assumed == [.type, .period, .digits, .algorithm])
    let rows = "serial,secret,algorithm,digits\n1,\(hex),HMAC-SHA512,7\n2,\(hex),,\n"
    let both = try list(rows, standard: standard).tokens.map(\.parameters)
    #expect(both[0] == CodeParameters(type: .totp(period: 60), algorithm: .sha512, digits: .seven))
    #expect(both[1] == standard)
    let counted = try #require(CodeParameters(type: .hotp, algorithm: .sha1, digits: .six))
    #expect(told(try list("1,\(hex),,,9\n", standard: counted)) == ["1 1 hotp 8 6"])
  }

  @Test func `may have quotes, blank lines, comments, a separator line and columns by name`() throws
  {
    let quoted = """
      sep=;

      # from the vendor
      "Model";"Serial Number";"Secret Key"
      "X ""2"";
      blue";="0012";"\(base32)"
       Y ; 13 ; \(base32.lowercased())\u{20}
      """
    #expect(told(try list(quoted)) == ["5 0012 totp 30 6", "7 13 totp 30 6"])
    let named = "x,\(hex),7,alice\n"
    #expect(
      told(try list(named, in: nil, "-,secret,serial,user")) == ["1 7 totp 30 6 alice"])
    #expect(told(try list("serial,secret\n" + "7,\(hex)\n", in: nil, "serial,secret")).count == 1)
    for wrong in ["serial", "serial,secret,secret", "serial,secret,name", ""] {
      #expect(TokenColumn.list(wrong) == nil)
    }
  }

  @Test func `is in one form, which is asked for where it could be either`() throws {
    // Both letters of base32 and digits of hexadecimal.
    let either = "ABCDEF2345672345ABCDEF2345672345"
    #expect(throws: TokenListError.eitherForm) { try self.list("1,\(either)\n") }
    #expect(try list("1,\(either)\n", in: .hexadecimal).tokens[0].secret.count == 16)
    #expect(try list("1,\(either)\n", in: .base32).tokens[0].secret.count == 20)
    #expect(try list("1,\(either)\n2,\(hex)\n").tokens[0].secret.count == 16)
    #expect(try list("1,\(either)\n2,\(base32)\n").tokens[0].secret.count == 20)
    #expect(throws: TokenListError.bothForms(hexadecimal: 2, base32: 3)) {
      try self.list("1,\(either)\n2,\(hex)\n3,\(base32)\n")
    }
    #expect(try list("serial,hex secret\n1,\(either)\n").tokens[0].secret.count == 16)
  }

  // shows: token-list
  @Test func `names all lines that are wrong, and no secret`() throws {
    let text = """
      serial,secret,type,period,digits,algorithm,counter
      ,\(hex),,,,,
      2,\(hex)0,,,,,
      3,31323334,,,,,
      4,\(String(repeating: "00", count: 20)),,,,,
      5,\(hex),motp,,,,
      6,\(hex),totp,301,,,
      7,\(hex),,,9,,
      8,\(hex),,,,MD5,
      9,\(hex),hotp,,,,x
      a/b,\(hex),,,,,
      2.6001E+12,\(hex),,,,,
      "12,\(hex)
      13,\(hex),,,,,
      13,\(hex),,,,,
      15
      """
    let bytes = try secret(text)
    do throws(TokenListError) {
      _ = try TokenList(bytes, in: nil, nil, standard: .standard)
      Issue.record("it was read")
    } catch {
      guard case .problems(let problems) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(
        problems.map(\.told) == [
          "line 2, column 1: no serial number",
          "line 3, column 2: the secret is not hexadecimal",
          "line 4, column 2: the secret is 4 bytes long, expected 10 to 128",
          "line 5, column 2: all bytes of the secret are the same",
          "line 6, column 3: not totp or hotp",
          "line 7, column 4: not a time step of 15 to 300 seconds",
          "line 8, column 5: not 6, 7 or 8 digits",
          "line 9, column 6: not SHA1, SHA256 or SHA512",
          "line 10, column 7: not a counter",
          "line 11, column 1: not a serial number",
          "line 12, column 1: a spreadsheet rounded this number, so it is no serial number",
          "line 13: a quote is not closed, or text follows it",
          "line 15, column 1: the same serial number as line 14",
          "line 16, column 2: no secret",
        ])
    }
  }

  @Test func `says how its head was read, and guesses nothing that codes are made by`() throws {
    let list = try list("Serial No;Model;Seed;Period (s)\n7;X;\(hex);60\n")
    #expect(told(list) == ["2 7 totp 60 6"])
    #expect(list.heads.map(\.column) == [.serial, .other, .secret, .period])
    for (head, meant) in [
      ("Refresh interval", TokenColumn.period), ("OTP digits count", .digits),
      ("Hash used", .algorithm), ("Counter start", .counter),
    ] {
      #expect(throws: TokenListError.unknownHead(column: 3, Array(head.utf8), meant)) {
        try self.list("serial,secret,\(head)\n7,\(self.hex),8\n")
      }
    }
    // A head that is not known is no token, though its words are base32.
    #expect(throws: TokenListError.noColumn(.serial)) {
      try self.list("Nummer,Initialisierungswert\n7,\(self.base32)\n")
    }
    #expect(
      told(try self.list("Nummer,Initialisierungswert\n7,\(base32)\n", in: nil, "serial,secret"))
        == ["2 7 totp 30 6"])
    let skipped = try self.list(
      "Nummer,Initialisierungswert\n7,\(base32)\n", in: nil, "serial,secret")
    #expect(skipped.headLine == 1)
    #expect(try self.list("7,\(base32)\n", in: nil, "serial,secret").headLine == nil)
  }

  @Test func `puts no secret where a serial number goes, and no sign of a spreadsheet`() throws {
    for rows in ["7,\(hex)\n8,41\(hex)\n", "7,\(base32)\n"] {
      #expect(throws: TokenListError.secretsAsSerials) {
        try self.list(rows, in: nil, "secret,serial")
      }
    }
    for serial in ["'7", "=7", "7\"8"] {
      #expect(throws: TokenListError.self) { try self.list("\(serial),\(self.hex)\n") }
    }
    #expect(told(try list("=\"007\",\(hex)\n")) == ["1 007 totp 30 6"])
    // Two columns of Yubico's log do not make one.
    #expect(throws: TokenListError.unknownColumns(line: 1)) {
      try self.list("7,x,y,\(self.hex),z,v\n")
    }
    #expect(throws: TokenListError.unknownColumns(line: 1)) {
      try self.list("7,\(self.hex),y,,,\nOATH-HOTP,\(self.hex),y,7,,\(self.hex)\n")
    }
  }

  @Test(
    arguments: [
      ("", .empty), ("\n# nothing\n", .empty), ("serial,secret\n", .empty),
      ("1 2\n", .noSeparator(hasBlanks: true)), ("1\n", .noSeparator(hasBlanks: false)),
      ("\u{feff}\n <?xml version=\"1.0\", x?>\n", .markup),
      ("serial,model,type\n", .noColumn(.secret)),
      ("secret,model,user\n1,2,3\n", .noColumn(.serial)),
      ("secret,seed,serial\n1,2,3\n", .doubleColumn(.secret)), ("1,\0", .notText),
      ("1,2,FooBar\n", .unknownColumns(line: 1)), ("\u{feff}", .empty),
    ] as [(String, TokenListError)])
  func `that is none is refused as a whole`(text: String, wanted: TokenListError) throws {
    #expect(throws: wanted) { try self.list(text) }
  }
}
