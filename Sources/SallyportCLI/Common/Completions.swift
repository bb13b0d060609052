import OneTimePassword
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSystem

/// What shells propose to complete a word. If something cannot be read, there are no proposals.
enum Completions {
  /// root, and the accounts of ordinary users.
  static func users(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    guard let all = try? AccountBook.all() else { return [] }
    return all.filter { $0.user == 0 || $0.isPerson }.map(\.account.name.text)
  }

  /// The authenticators of the last user named on the line, if the caller is root.
  static func authenticators(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    let names = words.compactMap { UserName(Array($0.utf8)) }
    let store = Store()
    for name in names.reversed() {
      guard let account = try? Accounts.find(name), account.uid != nil,
        let found = try? store.load(account)
      else { continue }
      return found.enrollment.authenticators.map(\.name.text)
    }
    return []
  }

  /// The files in /etc/pam.d.
  static func services(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    StackDirectory().services()
  }
}
