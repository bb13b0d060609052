import OneTimePassword
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// What shells propose to complete a word. If something cannot be read, there are no proposals.
package enum Completions {
  /// root, and the accounts of ordinary users.
  package static func users(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    guard let all = try? AccountBook.all() else { return [] }
    return safe(all.filter { $0.user == 0 || $0.isPerson }.compactMap(\.account.name.typed))
  }

  /// The authenticators of the last user named on the line, if the caller is root.
  static func authenticators(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    let names = words.compactMap { UserName(Array($0.utf8)) }
    let store = Store()
    for name in names.reversed() {
      guard let account = try? Accounts.find(name), account.uid != nil,
        let found = try? store.load(account)
      else { continue }
      return safe(found.enrollment.authenticators.map(\.name.text))
    }
    return []
  }

  /// The files in /etc/pam.d.
  static func services(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    safe(StackDirectory().services())
  }

  /// Those that a shell takes as they are. Bash expands the words that it is proposed, so a name
  /// with `$(` in it, which its owner may have chosen, would run as a command.
  static func safe(_ words: [String]) -> [String] { words.filter { shellQuoted($0) == $0 } }
}
