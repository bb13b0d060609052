import OneTimePassword
import Testing

@Suite("Texts as bytes") struct TextsAsBytes {
  static let texts = ["", "a", "b", "ab", "ba", "abc", "abd", "a\0", "a\0b"].map { Array($0.utf8) }

  @Test("are the same where all of them are", arguments: texts, texts)
  func compared(_ a: [UInt8], _ b: [UInt8]) { #expect(same(a, b) == (a == b)) }

  @Test("are joined one behind the other", arguments: texts, texts)
  func together(_ a: [UInt8], _ b: [UInt8]) { #expect(joined(a, b) == a + b) }

  @Test(
    "are taken apart behind a prefix",
    arguments: [
      ("user=x", "x"), ("user=", ""), ("user", nil), ("User=x", nil), ("", nil), ("xuser=", nil),
    ] as [(String, String?)])
  func apart(_ text: String, _ expected: String?) {
    #expect(rest(of: Array(text.utf8), after: "user=") == expected.map { Array($0.utf8) })
  }

  @Test(
    "are those of a literal", arguments: [("", ""), ("code", "code")] as [(StaticString, String)])
  func literal(_ text: StaticString, _ expected: String) {
    #expect(bytes(of: text) == Array(expected.utf8))
    #expect(same(text, Array(expected.utf8)))
    #expect(!same(text, Array("other".utf8)))
  }
}
