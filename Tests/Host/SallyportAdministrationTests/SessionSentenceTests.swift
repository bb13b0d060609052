import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `The sentences of a session` {
  @Test func `stand in English where their cases do`() {
    let english = String(describing: SessionSentence.english).split(separator: "\n")
    #expect(english.count == SessionSentence.allCases.count)
    for (sentence, line) in zip(SessionSentence.allCases, english) {
      let key = "\(sentence)".reduce(into: "") { key, letter in
        key += letter.isUppercase ? "_\(letter.lowercased())" : "\(letter)"
      }
      #expect(line.hasPrefix("\(key) = "))
    }
  }

  @Test(arguments: ["de", "es", "fr", "it", "ja", "pl", "pt", "zh"])
  func `are whole in each language that comes with the programs`(_ name: String) throws {
    let catalog = try #require(Secret(try textOfSources("pam/messages/\(name)").utf8))
    let read = try Sentences.session(in: catalog)
    #expect(read.words(.codeToRename, "one", "two").contains("one"))
    #expect(read.words(.notEnrolled) != Sentences.session(nil).words(.notEnrolled))
  }

  @Test func `are in English where the catalog lacks their section`() throws {
    let text = try textOfSources("pam/messages/fr").prefix { $0 != "[" }
    let catalog = try #require(Secret(text.utf8))
    #expect(Sentences.session(catalog).words(.notEnrolled) == "you are not enrolled")
    #expect(throws: SettingsError.self) { try Sentences.session(in: catalog) }
  }
}
