import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportSupport
package import SallyportSystem

// The catalogs that the policy names.

extension PolicyText {
  /// Why users read English where it names another language: a line of the catalog, or its own
  /// where that cannot be read.
  func languageProblems(in store: Store, under root: String) -> [PolicyFacts.Problem] {
    values(of: .language).compactMap { word, line in
      guard let language = Policy.language(Array(word.utf8)) else {
        let found = printable(word.utf8, limit: 64)
        return PolicyFacts.Problem(
          location: FileLocation(file: path, line: line),
          text: "language = \(found): wanted \(PolicyKey.language.wanted)\(others(root))")
      }
      if language == 0 { return nil }
      do throws(StoreTrouble) {
        let (file, text) = try store.catalog(of: language, under: Array(root.utf8))
        let name = String(decoding: file.bytes.dropFirst(root.utf8.count), as: UTF8.self)
        return Sentences.mistake(in: text).map {
          PolicyFacts.Problem(
            location: FileLocation(file: name, line: $0.line), text: $0.problem.text)
        }
      } catch {
        let trouble = Message(error, at: Invocation(verb: "doctor")).text
        return PolicyFacts.Problem(
          location: FileLocation(file: path, line: line),
          text: "language = \(word): \(trouble)\(others(root, than: word))")
      }
    }
  }

  /// The languages that there are, in parentheses; empty where the one that was named is one.
  private func others(_ root: String, than word: String = "") -> String {
    var here = Machine()
    here.root = root
    let found = here.paths("\(Store.messages)*").compactMap { path -> String? in
      let name = path.dropFirst("\(Store.messages)".utf8.count)
      return Policy.language(Array(name.utf8)) == nil ? nil : String(name)
    }
    let all = (found + ["en"]).sorted()
    return all.contains(word) ? "" : " (available: \(all.joined(separator: ", ")))"
  }

  /// The same, as warnings.
  package func languageWarnings(in store: Store, under root: String)
    -> [(file: String, line: Int, text: String)]
  {
    languageProblems(in: store, under: root).map {
      ($0.location.file, $0.location.line ?? 0, "\($0.text): users read English")
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
