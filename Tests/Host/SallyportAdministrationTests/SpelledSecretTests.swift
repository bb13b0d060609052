import OneTimePassword
import SallyportAdministration
import TestSupport
import Testing

@Suite struct `A secret as others spell it` {
  @Test func `loses the bits of its last letter that belong to no byte`() throws {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var random = Seeded(32)
    for count in 1...130 where count % 5 != 0 {
      let original = random.bytes(count...count)
      let encoded = try #require(Base32.encode(try secret(original)))
      let letters = encoded.bytes(in: 0..<encoded.count)
      let last = try #require(alphabet.firstIndex(of: letters[letters.count - 1]))
      for surplus in 0..<(1 << (letters.count * 5 % 8)) {
        let text = Array(letters.dropLast()) + [alphabet[last + surplus]]
        let parted = [text[0], UInt8(ascii: "-")] + text.dropFirst()
        for spelled: [UInt8] in [text, text.map { lowercased($0) }, text + [0x20], parted] {
          #expect(try bytes(Base32.decodeAsApps(secret(spelled))) == original)
        }
      }
    }
  }

  @Test(
    arguments: [
      ("M", .length), ("MZX", .length), ("MZXW6Y", .length), ("MZ=", .padding),
      ("M1", .character),
    ] as [(String, Base32.Error.Kind)])
  func `is refused where letters are missing`(text: String, kind: Base32.Error.Kind) throws {
    let typed = try secret(text)
    do throws(Base32.Error) {
      _ = try Base32.decodeAsApps(typed)
      Issue.record("read")
    } catch {
      #expect(error.kind == kind)
    }
  }

  @Test func `comes back from hexadecimal of any length`() throws {
    var random = Seeded(16)
    for count in 0...130 {
      let original = random.bytes(count...count)
      let text = original.map { hex($0) }.joined()
      #expect(try bytes(Hexadecimal.decode(secret(text))) == original)
      #expect(try bytes(Hexadecimal.decode(secret(text.uppercased() + " "))) == original)
      if count > 0 {
        #expect(throws: Hexadecimal.Error.oddCount) {
          try Hexadecimal.decode(secret(String(text.dropLast())))
        }
      }
    }
    #expect(throws: Hexadecimal.Error.character(at: 2)) { try Hexadecimal.decode(secret("00g0")) }
  }

  private func hex(_ byte: UInt8) -> String {
    let digits = Array("0123456789abcdef")
    return String([digits[Int(byte >> 4)], digits[Int(byte & 15)]])
  }
}
