import CSystem
import SallyportSystem

/// Why it is not known whether an account has a key that sshd would take.
enum SSHKeyGap: Hashable {
  /// Keys can also come from what this keyword names.
  case elsewhere(keyword: String)
  /// This file, and those after it, were not read: the files took too long together.
  case slow(String)
  /// A file cannot be read, for this reason.
  case unread(String)
}

/// Whether an account has a key that sshd would take.
enum SSHKeyAnswer: Equatable {
  case yes, no
  case unseen(SSHKeyGap)
}

/// The files of keys, each read once.
final class SSHKeyring {
  private let machine: Machine
  /// By name of the account and path.
  private var known: [String: Probe<[SSHKeyLine]>] = [:]
  /// What reading may still take, for all accounts together, in nanoseconds.
  private var left: UInt64

  init(_ machine: Machine, seconds: UInt64 = 2) {
    (self.machine, left) = (machine, seconds * 1_000_000_000)
  }

  /// Whether there is a key; not whether sshd lets the account try one.
  func key(
    of account: AccountFacts.Account, _ settings: SSHSettings, from connection: SSHConnection
  ) -> SSHKeyAnswer {
    var gap: SSHKeyGap?
    // Only for root does a key need a command.
    let own = account.uid == 0 ? settings : settings.replacing("permitrootlogin", with: [])
    for path in settings.keyFiles(of: account) {
      switch lines(of: path, account) {
      case nil: gap = gap ?? .slow(path)
      case .absent?: break
      case .unseen(let reason)?: gap = gap ?? .unread(reason)
      case .seen(let lines)?:
        if lines.contains(where: { own.takes($0, from: connection) }) { return .yes }
        if lines.contains(where: \.isAuthority) {
          gap = gap ?? .elsewhere(keyword: "cert-authority")
        }
      }
    }
    let others = ["AuthorizedKeysCommand", "TrustedUserCAKeys"].first { keyword in
      !["", "none"].contains(settings[keyword.lowercased()])
    }
    if let others { gap = .elsewhere(keyword: others) }
    return gap.map { .unseen($0) } ?? .no
  }

  /// nil if it was not read.
  private func lines(of path: String, _ account: AccountFacts.Account) -> Probe<[SSHKeyLine]>? {
    let name = "\(account.name)\n\(path)"
    if let lines = known[name] { return lines }
    guard left > 0 else { return nil }
    let start = sys_monotonic()
    let text = machine.text(path, of: account)
    left -= min(left, sys_monotonic() - start)
    let lines: Probe<[SSHKeyLine]> =
      switch text {
      case .seen(let text) where text.utf8.count >= Machine.longestText:
        .unseen("\(path): only its beginning was read")
      case .seen(let text): .seen(linesOf(text).compactMap { SSHKeyLine($0) })
      case .absent: .absent
      case .unseen(let reason): .unseen(reason)
      }
    known[name] = lines
    return lines
  }
}
