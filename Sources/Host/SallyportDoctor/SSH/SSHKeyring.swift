import CSystem
import SallyportCore
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
enum SSHKeyAnswer: Hashable {
  case yes, no
  /// Only from hosts that none of the connections comes from.
  case from(hosts: String)
  case unseen(SSHKeyGap)

  /// Why it is not known; nil if it is.
  var gap: SSHKeyGap? {
    guard case .unseen(let gap) = self else { return nil }
    return gap
  }
}

/// The files of keys, each read once.
final class SSHKeyring {
  /// The files that a value of AuthorizedKeysFile names for an account.
  private struct Place: Hashable {
    let user, words: String
  }

  private let machine: Machine
  private let configuration: SSHConfiguration
  private var known: [Place: [File]] = [:]
  /// What reading may still take, for all accounts together, in nanoseconds.
  private var left: UInt64

  init(
    _ machine: Machine, _ configuration: SSHConfiguration = SSHConfiguration(), seconds: UInt64 = 2
  ) {
    (self.machine, self.configuration) = (machine, configuration)
    left = seconds * 1_000_000_000
  }

  /// Whether there is a key; not whether sshd lets the account try one. `others` than `connection`
  /// are told of by themselves.
  func key(
    of account: AccountFacts.Account, _ settings: SSHSettings, from connection: SSHConnection,
    others: [SSHConnection] = []
  ) -> SSHKeyAnswer {
    var (gap, hosts): (SSHKeyGap?, String?)
    for (path, lines) in files(of: account, settings) {
      switch lines {
      case nil: gap = gap ?? .slow(path)
      case .absent?: break
      case .unseen(let reason)?: gap = gap ?? .unread(reason)
      case .seen where settings.isOn("strictmodes") && !isSafe(path, of: account): break
      case .seen(let lines)?:
        // Only for root does a key need a command.
        let own = account.uid == 0 ? settings : settings.replacing("permitrootlogin", with: [])
        let taken = lines.filter { own.takes($0, from: connection) }
        if taken.contains(where: { $0.unknownOption == nil }) {
          let mayBeRevoked = !["", "none"].contains(settings["revokedkeys"])
          return mayBeRevoked ? .unseen(.elsewhere(keyword: "RevokedKeys")) : .yes
        }
        if let option = taken.first?.unknownOption { gap = gap ?? .elsewhere(keyword: option) }
        if lines.contains(where: \.isAuthority) {
          gap = gap ?? .elsewhere(keyword: "cert-authority")
        }
        let bound = lines.filter { line in
          own.takes(line, from: nil) && !others.contains { own.takes(line, from: $0) }
        }
        hosts = hosts ?? bound.first?.hosts
      }
    }
    let others = ["AuthorizedKeysCommand", "TrustedUserCAKeys"].first { keyword in
      !["", "none"].contains(settings[keyword.lowercased()])
    }
    if let others { gap = .elsewhere(keyword: others) }
    if let gap { return .unseen(gap) }
    return hosts.map { .from(hosts: $0) } ?? .no
  }

  /// Whether nobody but root and the account can change the file, or replace it. As sshd looks at
  /// it: where links lead, up to the home, or else to the root directory.
  private func isSafe(_ path: String, of account: AccountFacts.Account) -> Bool {
    let home = machine.resolved(account.home)
    var path = machine.resolved(path)
    while true {
      // What does not answer was read before.
      guard let facts = machine.file(path).value else { return true }
      if ![0, account.uid].contains(facts.owner) || facts.mode & 0o022 != 0 { return false }
      guard path != home, let end = path.lastIndex(of: "/"), end > path.startIndex else {
        return true
      }
      path = String(path[..<end])
    }
  }

  /// A file, and its lines; nil if it was not read.
  private typealias File = (path: String, lines: Probe<[SSHKeyLine]>?)

  private func files(of account: AccountFacts.Account, _ settings: SSHSettings) -> [File] {
    let place = Place(user: account.name, words: settings.written("authorizedkeysfile"))
    if let files = known[place] { return files }
    let files = settings.keyFiles(of: account, configuration).map { ($0, lines(of: $0, account)) }
    known[place] = files
    return files
  }

  private func lines(of path: String, _ account: AccountFacts.Account) -> Probe<[SSHKeyLine]>? {
    guard left > 0 else { return nil }
    let start = sys_monotonic()
    let text = machine.text(path, of: account)
    left -= min(left, sys_monotonic() - start)
    switch text {
    case .seen(let text) where text.utf8.count >= Machine.longestText:
      return .unseen("\(path): only its beginning was read")
    case .seen(let text):
      let now = (try? Clock.now()) ?? UnixTime(0)
      return .seen(linesOf(text).compactMap { SSHKeyLine($0) }.filter { !$0.isOver(at: now) })
    case .absent: return .absent
    case .unseen(let reason): return .unseen(reason)
    }
  }
}
