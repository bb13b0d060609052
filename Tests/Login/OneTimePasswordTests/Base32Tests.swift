import OneTimePassword
import TestSupport
import Testing

@Suite struct `Base32 text` {
  @Test func `is that of RFC 4648 section 10`() throws {
    let rows = try vectors("rfc4648-base32.txt")
    #expect(rows.count == 7)
    for row in rows {
      let wanted = try bytes(hex: row[0])
      let unpadded = row[1].filter { $0 != "=" }
      #expect(text(try #require(Base32.encode(try secret(wanted)))) == unpadded)
      for text in [row[1], unpadded, row[1].lowercased()] {
        #expect(try bytes(Base32.decode(secret(text))) == wanted, "\(text)")
      }
    }
  }

  @Test func `of every length comes back`() throws {
    var random = Seeded(1)
    for count in 0...200 {
      let original = random.bytes(count...count)
      let encoded = try #require(Base32.encode(try secret(original)))
      #expect(encoded.count == (count * 8 + 4) / 5)
      #expect(try bytes(Base32.decode(encoded)) == original)
    }
  }

  @Test(arguments: [
    "MZXW6YTBOI", "mzxw6ytboi", "MzXw6yTbOi", "MZXW 6YTB OI", "  MZXW6YTBOI ", "MZXW-6YTB-OI",
    "-MZXW6YTBOI-", "MZXW\t6YTBOI", "MZXW6YTBOI======", "MZXW6YTBOI ======",
    "MZXW6YTBOI= = =-= = =",
    "M-Z X-W 6 Y T B O I",
  ]) func `forgives case, blanks, hyphens and padding`(text: String) throws {
    #expect(try bytes(Base32.decode(secret(text))) == Array("foobar".utf8))
  }

  @Test(arguments: ["", " ", "-", " - \t"]) func `of nothing is nothing`(text: String) throws {
    #expect(try Base32.decode(secret(text)).count == 0)
  }

  @Test(
    arguments: [
      ("0", .character, 0), ("MY1", .character, 2), ("MZXW8", .character, 4),
      ("MZ9W", .character, 2),
      ("MZXW6YTB\n", .character, 8), ("MZXW6YTB\0", .character, 8), ("MY.", .character, 2),
      ("MY+", .character, 2), ("MY\r", .character, 2), ("ÄM", .character, 0),
      ("M\u{7f}", .character, 1),
      ("M@", .character, 1), ("M[", .character, 1), ("M`", .character, 1), ("M{", .character, 1),
      ("M", .length, 1), ("MZX", .length, 3), ("MZXW6Y", .length, 6), ("MZXW6YTBM", .length, 9),
      ("M=======", .length, 8), ("M Z X", .length, 5),
      ("MY=", .padding, 3), ("MY=====", .padding, 7), ("MY=======", .padding, 9),
      ("MZXW6YTB=", .padding, 9), ("MZXW6YTB========", .padding, 16), ("=", .padding, 1),
      ("========", .padding, 8), ("MY==MY==", .padding, 4), ("=MY", .padding, 1),
      ("MZ", .trailingBits, 1), ("MZXX", .trailingBits, 3), ("MZXW7", .trailingBits, 4),
      ("MZXW6YR", .trailingBits, 6), ("M B ", .trailingBits, 2), ("MZ======", .trailingBits, 1),
    ] as [(String, Base32.Error.Kind, Int)])
  func `refuses all else and says where`(text: String, kind: Base32.Error.Kind, at: Int) throws {
    #expect(throws: Base32.Error(kind, at: at)) { _ = try Base32.decode(secret(text)) }
  }

  @Test func `takes no byte outside its alphabet`() throws {
    let taken = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567 -\t=".utf8)
    for byte in UInt8.min...UInt8.max where !taken.contains(byte) {
      #expect(throws: Base32.Error(.character, at: 0)) { _ = try Base32.decode(secret([byte])) }
    }
  }

  // decisive
  @Test func `survives any bytes, and gives one text per secret`() throws {
    var random = Seeded(2)
    let likely = Array("ABCXYZabcxyz234567 -=01".utf8)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...24, using: &random)
      let typed = (0..<count).map { _ in random.pick(likely) }
      guard let decoded = try? Base32.decode(secret(typed)) else { continue }
      let letters = typed.filter { !Array(" -=".utf8).contains($0) }
      #expect(
        text(try #require(Base32.encode(decoded)))
          == String(decoding: letters, as: UTF8.self).uppercased())
    }
  }
}
