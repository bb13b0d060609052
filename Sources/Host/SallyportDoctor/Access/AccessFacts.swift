package import OneTimePassword
package import PAMStack
import SallyportAdministration
package import SallyportCore
import SallyportSupport
package import SallyportSystem

/// What the table of who gets in is made of.
package struct AccessFacts {
  let machine: Machine
  let now: UnixTime
  /// With what is planned for the files of pam.d.
  var stacks: StackDirectory
  /// Services that are told of even without a line of ours.
  private(set) var services: [String] = []
  let accounts: AccountFacts
  private(set) var ssh: SSHAccess?
  package let sudoers: Sudoers
  /// Those of another program beside it.
  let secondSudoers: Sudoers?
  let doas: Doas
  let polkit: PolkitFacts
  private(set) var policies: PolicySources
  /// Where the enrollments are from.
  private let store: String
  /// Whether no login can succeed by the store.
  var isStoreBroken = false
  /// By login name; nobody else is enrolled in the files of this machine.
  var enrollments: [String: KnownEnrollment] = [:]
  /// What root has set for them, by login name.
  var notes: [String: UserNote.Level] = [:]
  /// Whom root has blocked, by login name.
  var blocked: Set<String> = []
  /// Where it verifies logins.
  var fleet = FleetKnowledge.unasked
  /// Why some account has no row, one line each.
  private(set) var gaps: [String] = []
}

extension AccessFacts {
  /// `accounts` and `sudoers`: what is known of the same machine already.
  init(
    of machine: Machine, _ store: Store, at now: UnixTime, accounts: AccountFacts? = nil,
    sudoers: Sudoers? = nil
  ) {
    let accounts = accounts ?? AccountFacts(of: machine)
    let policies = PolicySources(store, of: machine)
    self.init(
      machine: machine, now: now, stacks: machine.stacks, accounts: accounts,
      sudoers: sudoers ?? Sudoers(of: machine), secondSudoers: Sudoers.second(of: machine),
      doas: Doas(of: machine, accounts), polkit: PolkitFacts(of: machine),
      policies: policies, store: store.root.text)
    ssh = access(of: machine)
    gaps = accounts.gaps.map(\.text)
    if let gap = self.sudoers.policy.gap { gaps.append("\(self.sudoers.name): \(gap.text)") }
    if ssh?.isCut == true {
      gaps.append("sshd: logins of more than \(SSHConnections.most) kinds of connections")
    }
    do throws(StoreTrouble) {
      try look(in: store)
    } catch {
      isStoreBroken = true
    }
  }

  /// `user`: the only one that it is to tell of; nil: everybody.
  package init(
    of machine: Machine, _ store: Store, at now: UnixTime, about user: UserName? = nil
  ) {
    let accounts = user.map { AccountFacts(of: machine, about: $0) }
    self.init(of: machine, store, at: now, accounts: accounts)
  }

  private mutating func look(in store: Store) throws(StoreTrouble) {
    try store.load(all: try store.enrolledNames()) { stored, found in
      var name = stored.user
      do throws(StoreTrouble) {
        guard let record = try found.get() else { return }
        name = record.enrollment.user
        let account = accounts[text(record.enrollment.user)].flatMap(\.asAccount)
        if let account { try store.verify(record, of: account) }
        enrollments[text(record.enrollment.user)] = .enrolled(kinds(of: record))
      } catch {
        if let name { enrollments[text(name)] = .broken }
      }
    }
    let levels = NoteLevels(of: store)
    for account in accounts.accounts {
      guard let known = account.asAccount else { continue }
      do throws(StoreTrouble) {
        if try store.isBlocked(known, at: { now }) { blocked.insert(account.name) }
      } catch {
        enrollments[account.name] = .broken
      }
      do throws(StoreTrouble) {
        notes[account.name] = try levels.level(of: known)
      } catch {
        // Of the enrolled it is not read.
        if enrollments[account.name] == nil { enrollments[account.name] = .broken }
      }
    }
  }

  /// The first line of ours that looks for enrollments in another store. Under a root of its own a
  /// machine has the usual one anywhere.
  func lineOfOtherStore(in stack: ServiceStack) -> StackEntry? {
    let usual = machine.root.isEmpty ? Store.usualRoot : store
    return ModuleLines(of: stack).lines.first { ($0.value(of: "store") ?? usual) != store }
  }

  /// People who are not seen, where a directory does not answer or does not find the enrolled; nil
  /// if none are known of.
  package var unseenPeople: String? {
    let names = enrollments.keys.filter { accounts[$0] == nil }.sorted()
    if let unlistable {
      return "a directory does not answer, so its people are not seen here: \(unlistable)"
        + (names.isEmpty ? "" : "; enrolled and not found: \(listed(names))")
    }
    guard !NameSources(of: "passwd", on: machine).areLocal else { return nil }
    let missing = names.prefix(AccountFacts.mostNames).filter { name in
      UserName(Array(name.utf8)).flatMap { try? Accounts.find($0) }?.uid == nil
    }
    return missing.isEmpty
      ? nil : "enrolled and not found: \(listed(missing)): deleted, or a directory is away"
  }

  /// Why the account database cannot be listed, as where its server is away; nil if it can.
  private var unlistable: String? {
    accounts.gaps.lazy.compactMap { gap in
      if case .unlistable(let reason) = gap { reason } else { nil }
    }.first
  }

  /// Whether every account has a row.
  package var isWhole: Bool { gaps.isEmpty }

  /// As it will be with these files of pam.d.
  package func assuming(_ stacks: StackDirectory) -> AccessFacts {
    var facts = self
    facts.stacks = stacks
    return facts
  }

  /// With these services told of, even if they have no line of ours.
  func telling(of services: [String]) -> AccessFacts {
    var facts = self
    facts.services = services
    return facts
  }

  /// As it will be with this text in our file of sshd's configuration; nil: without the file.
  package func assuming(sshFile text: String?) -> AccessFacts {
    var facts = self
    facts.ssh = access(of: machine.assuming(sshFile: text))
    return facts
  }

  private func access(of machine: Machine) -> SSHAccess {
    SSHAccess(of: machine, accounts, origins: origins)
  }

  /// Between which the policy tells.
  private var origins: [String] {
    PolicyTerms(of: ServiceStack.ours(in: stacks), policies).origins
  }

  /// As it will be with this policy in the file at `path`.
  package func assuming(_ policy: Secret, at path: String) -> AccessFacts {
    var facts = self
    facts.policies = policies.assuming(policy, at: path)
    if facts.origins != origins { facts.ssh = facts.access(of: machine) }
    return facts
  }

  private func text(_ name: UserName) -> String { String(decoding: name.bytes, as: UTF8.self) }

  private func kinds(of record: Record) -> Set<FactorKind> {
    let left = record.enrollment.backupCodes?.left(record.state.backupCodes) ?? 0
    return Set(
      FactorKind.allCases.filter { kind in
        kind == .backupCode ? left > 0 : record.enrollment.factors.contains(kind)
      })
  }
}

extension AccountFacts.Account {
  /// nil for a name that nobody can be enrolled under.
  var asAccount: Account? {
    UserName(Array(name.utf8)).map { Account(name: $0, uid: uid, group: group) }
  }
}

extension AccountFacts.Gap {
  /// One line on what may be missing.
  fileprivate var text: String {
    switch self {
    case .unread(let path, let reason): reason.isEmpty ? "\(path) cannot be read" : reason
    case .cut(let path): "\(path): only its beginning was read"
    case .unlisted(let sources): "accounts of \(listed(sources)), which may list nobody"
    case .unlistable(let reason): "the account database: \(reason)"
    case .tooManyNames(let most): "more than \(most) names that no source lists"
    }
  }
}
