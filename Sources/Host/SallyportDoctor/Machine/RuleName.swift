import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem

/// A name in a policy rule that the account database does not have as it stands there.
package struct RuleName {
  /// What it names.
  package enum Kind: String { case account, group }

  /// What is said of it.
  package struct Flaw: Equatable {
    package let text: String
    /// nil: it is sure.
    package var doubt: Doubt?
  }

  /// Why it is not sure.
  package enum Doubt {
    /// A source may be away that has it.
    case mayBeAway
    case unanswered
  }

  private let kind: Kind
  private let word: String
  /// Of the lookup; 0: every source answered.
  private let number: Int32

  init(kind: Kind, word: String, errno number: Int32) {
    (self.kind, self.word, self.number) = (kind, word, number)
  }

  /// An account; nil if it is found under this name.
  package static func flaw(ofAccount word: String, on machine: Machine) -> Flaw? {
    machine.leaveSilentSources()
    do throws(StoreTrouble) {
      if let own = try account(word) {
        if own == word { return nil }
        let text = "\(shown(word)) matches nobody, the account is \(printable(own.utf8))"
        return Flaw(text: text)
      }
      return RuleName(kind: .account, word: word, errno: 0).flaw(on: machine)
    } catch {
      var number = EIO
      if case .system(_, _, let errno) = error { number = errno }
      return RuleName(kind: .account, word: word, errno: number).flaw(on: machine)
    }
  }

  /// The words of one line, of which one is no name, where they are one name together: in quotes
  /// they are.
  package static func whole(of words: [String], _ kind: Kind) -> Flaw? {
    let name = words.joined(separator: " ")
    let isThere =
      switch kind {
      case .account: (try? account(name)) != nil
      case .group: (try? AccountBook.members(of: name)) != nil
      }
    guard words.count > 1, isThere else { return nil }
    let shown = printable(name.utf8, limit: 100)
    return Flaw(text: "\(shown) is not matched: write it in quotes, \"\(shown)\"")
  }

  /// Its own name; nil if there is none.
  private static func account(_ word: String) throws(StoreTrouble) -> String? {
    guard let name = UserName(Array(word.utf8)) else { return nil }
    let found = try Accounts.find(name)
    return found.uid == nil ? nil : String(decoding: found.name.bytes, as: UTF8.self)
  }

  private static func shown(_ word: String) -> String {
    mayHoldSecret(word.utf8) ? "of this name" : printable(word.utf8, limit: 100)
  }

  func flaw(on machine: Machine) -> Flaw {
    let shown = RuleName.shown(word)
    if number != 0 {
      return Flaw(
        text: "it is not known whether there is \(kind == .group ? "a" : "an") "
          + "\(kind.rawValue) \(shown): a source in nsswitch.conf does not answer "
          + "(\(errnoText(number)))", doubt: .unanswered)
    }
    let text = "there is no \(kind.rawValue) \(shown)"
    if let meant = inOtherCase {
      return Flaw(text: "\(text). Did you mean: \(printable(meant.utf8))")
    }
    let database = kind == .group ? "group" : "passwd"
    if NameSources(of: database, on: machine).areLocal { return Flaw(text: text) }
    return Flaw(text: "\(text), or a source in nsswitch.conf is away", doubt: .mayBeAway)
  }

  /// The name that differs in upper and lower case alone. Of one that no source lists, it is found
  /// in lower case.
  private var inOtherCase: String? {
    let lower = word.lowercased()
    return names(orFound: lower).first { $0 != word && $0.lowercased() == lower }
  }

  private func names(orFound lower: String) -> [String] {
    switch kind {
    case .account:
      let all = ((try? AccountBook.all()) ?? []).compactMap(\.account.name.typed)
      return all + [try? RuleName.account(lower)].compactMap { $0 }
    case .group:
      let all = ((try? AccountBook.groups()) ?? []).map(\.name)
      return all + ((try? AccountBook.members(of: lower)) == nil ? [] : [lower])
    }
  }
}
