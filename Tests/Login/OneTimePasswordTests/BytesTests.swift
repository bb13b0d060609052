import OneTimePassword
import TestSupport
import Testing

@Suite struct `Texts as bytes` {
  static let texts = ["", "a", "b", "ab", "ba", "abc", "abd", "a\0", "a\0b"].map { Array($0.utf8) }

  @Test(arguments: texts, texts)
  func `are the same where all of them are`(_ a: [UInt8], _ b: [UInt8]) {
    #expect(same(a, b) == (a == b))
  }

  @Test(arguments: texts, texts)
  func `are joined one behind the other`(_ a: [UInt8], _ b: [UInt8]) {
    #expect(joined(a, b) == a + b)
  }

  @Test(
    arguments: [
      ("user=x", "x"), ("user=", ""), ("user", nil), ("User=x", nil), ("", nil), ("xuser=", nil),
    ] as [(String, String?)])
  func `are taken apart behind a prefix`(_ text: String, _ expected: String?) {
    #expect(rest(of: Array(text.utf8), after: "user=") == expected.map { Array($0.utf8) })
  }

  @Test(arguments: [("", ""), ("code", "code")] as [(StaticString, String)])
  func `are those of a literal`(_ text: StaticString, _ expected: String) {
    #expect(bytes(of: text) == Array(expected.utf8))
    #expect(same(text, Array(expected.utf8)))
    #expect(!same(text, Array("other".utf8)))
  }
}
