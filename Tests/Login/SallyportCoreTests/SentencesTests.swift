import SallyportCore
import Testing

@Suite struct `The sentences of a login` {
  private let english = String(describing: Sentence.english).split(separator: "\n")

  @Test func `each line of English stands where its case does`() {
    #expect(english.count == Sentence.allCases.count)
    for (sentence, line) in zip(Sentence.allCases, english) {
      let key = "\(sentence)".reduce(into: "") { key, letter in
        key += letter.isUppercase ? "_\(letter.lowercased())" : "\(letter)"
      }
      #expect(line.hasPrefix("\(key) = "))
    }
  }

  @Test func `places are filled from left to right`() {
    let text = Sentences().text(.passUsedFrom, Array("2 days ago".utf8), Array("::1".utf8))
    #expect(String(decoding: text, as: UTF8.self) == "a pass was used 2 days ago from ::1")
  }

  @Test func `a line ends where the sentence says so`() {
    let text = String(decoding: Sentences().text(.installApp), as: UTF8.self)
    #expect(text.hasPrefix("Time is short: first install\nan authenticator app"))
    let last = Sentences().text(.newCodesOrAsk, Array("a".utf8), Array("b".utf8))
    #expect(String(decoding: last, as: UTF8.self) == "New ones: a, or ask the administrator of b")
  }

  @Test func `what all are told who are refused has no place`() {
    for sentence in [Sentence.notAccepted, .backupCode, .passwordAndBackupCode] {
      #expect(Sentences().text(sentence) == Sentences().text(sentence, [0x78], [0x78]))
    }
  }
}
