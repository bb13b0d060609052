import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

// The catalogs that the policy names.

extension PolicyText {
  /// Why users read English where it names another language: a line of the catalog, or its own
  /// where that cannot be read.
  func languageProblems(in store: Store, under root: String) -> [PolicyFacts.Problem] {
    words(of: .language).compactMap { word, line in
      guard let language = Policy.language(Array(word.utf8)), language != 0 else { return nil }
      let name = String(decoding: Policy.name(ofLanguage: language), as: UTF8.self)
      let file = "\(Store.messages)\(name)"
      do throws(StoreTrouble) {
        let text = try store.policyText(at: Array((root + file).utf8), optional: false)
        return text.flatMap(Sentences.mistake).map {
          PolicyFacts.Problem(
            location: FileLocation(file: file, line: $0.line), text: $0.problem.text)
        }
      } catch {
        let trouble = Message(error, at: Invocation(verb: "doctor")).text
        return PolicyFacts.Problem(
          location: FileLocation(file: path, line: line), text: "language = \(word): \(trouble)")
      }
    }
  }
}

extension Sentences {
  /// The first one of a catalog; nil where it is whole.
  fileprivate static func mistake(in catalog: Secret) -> SettingsError? {
    do throws(SettingsError) {
      var lines = try SettingsScanner(catalog)
      _ = try Sentences(catalog: catalog, &lines)
      _ = try Sentences.session(in: catalog)
      return nil
    } catch {
      return error
    }
  }
}
