import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// A catalog of sentences: one that reads shows what stands in each place once, in no more than
  /// it may take, and nothing that deceives a terminal; of one that does not, the line is named.
  static let catalog = Fuzzer(name: "catalog") { input in
    let sentences: Sentences
    do throws(SettingsError) {
      let text = secret(input)
      var lines = try SettingsScanner(text)
      sentences = try Sentences(catalog: text, &lines)
    } catch {
      must(isPlaced(error, in: input), "no line of the text: \(error)")
      return
    }
    for sentence in Sentence.allCases {
      let bare = sentences.text(sentence)
      must(!bare.isEmpty || Sentences().text(sentence).isEmpty, "\(sentence) is empty")
      let lines = bare.split(separator: 0x0a, omittingEmptySubsequences: true)
      must(lines.allSatisfy { Label.isPresentable($0) }, "\(sentence) deceives")
      must(bare.count <= 500, "\(sentence) is long")
      // A byte that no sentence has.
      for (first, second) in [([UInt8(1)], [UInt8]()), ([], [1])] {
        let text = sentences.text(sentence, first, second)
        let english = Sentences().text(sentence, first, second)
        must(
          text.filter { $0 == 1 }.count == english.filter { $0 == 1 }.count,
          "\(sentence) lacks a place")
      }
    }
  }
}
