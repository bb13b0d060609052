import Glibc
import PAMStack
import SallyportSupport

/// How `pam enable` will change sshd's settings; nothing is written yet.
package struct SSHPlan {
  /// The settings in the end.
  package let last: SSHStage
  /// What our file says now; nil if there is none.
  package let current: SSHStage?
  /// Whether the wanted values are in effect already, without a file of ours.
  package let isSetByOthers: Bool
  /// Users who will still get in by a key alone, each with the Match block that allows it: one of
  /// somebody else.
  package let byKeyAlone: [String]
  /// What sshd accepts on the way to the method: nothing less than it asks for now.
  package let passing: SSHStage.Passing
  /// The accounts in the machine's own files.
  private let accounts: AccountFacts
  private let enrolled: [String]
  private let machine: Machine

  /// Who is in the block of `match` for those with a key.
  private let keyed: Set<String>

  package var method: SSHMethod { last.method }

  /// `asked` is the method that was given; `people` are those that `match` asks something else;
  /// `enrolled` are the names of enrolled users; `hasAfterKey` says that the PAM line already takes
  /// a key for the first factor. Returns nil if sshd is not installed and no method was given.
  package init?(
    _ asked: SSHMethod?, _ people: SSHPeople, of machine: Machine, enrolled: [String],
    hasAfterKey: Bool
  ) throws(SSHTrouble) {
    if asked == nil, machine.run(["sshd", "-T"]) == .absent { return nil }
    (self.machine, self.enrolled) = (machine, enrolled)
    accounts = AccountFacts(of: machine)
    current = asked == SSHMethod.none ? nil : try machine.sshStage()
    if asked == SSHMethod.none {
      (last, isSetByOthers, passing) = (SSHStage(method: .none), true, .eitherOrder)
      keyed = []
      byKeyAlone = SSHPlan.keyHolders(machine, accounts)
      return
    }
    let configuration = SSHConfiguration(of: machine)
    let names = SSHPlan.names(accounts, enrolled)
    let before = try SSHSurvey(of: machine, configuration, accounts, people: names)
    if let other = before.base.otherService(configuration) { throw .shadowed([other]) }
    passing = before.letsKeysAlone ? .keyAlone : .eitherOrder
    let method: SSHMethod
    if let named = asked ?? current?.method {
      method = named
    } else {
      method = try SSHPlan.usual(before.base, hasAfterKey: hasAfterKey)
    }
    if method.isMixed { try before.base.needPasswords(for: method) }
    last = SSHStage(method: method, people: method == .match ? people : SSHPeople())
    keyed = Set(accounts.keyed(last.people))
    if method == .match, keyed.isEmpty, people.keyGroup != nil || people.aloneUsers.isEmpty {
      throw SSHTrouble.nobodyHasAKey(people, accounts)
    }
    isSetByOthers =
      current == nil
      && before.mismatches(with: last, configuration, enrolled: enrolled, keyed: keyed).isEmpty
    var (after, planned) = (before, configuration)
    if !isSetByOthers {
      let changed = machine.assuming(sshFile: last.text)
      planned = SSHConfiguration(of: changed)
      after = try SSHSurvey(of: changed, planned, accounts, people: names)
      var found = after.mismatches(with: last, planned, enrolled: enrolled, keyed: keyed)
      if found.isEmpty {
        found = SSHPlan.mismatches(of: changed, accounts, with: last, keyed, enrolled: enrolled)
      }
      if !found.isEmpty { throw .shadowed(found) }
    }
    byKeyAlone = after.exceptions(enrolled).compactMap { part in
      let location = part.block.map { planned.blocks[$0].location }
      if location?.file == SSHStage.path { return nil }
      return "\(listed(part.users)) (\(part.who ?? ""), \(location?.text ?? ""))"
    }
  }

  /// root, the enrolled users, and those who may have to enroll.
  private static func names(_ accounts: AccountFacts, _ enrolled: [String]) -> [String] {
    let others = ["root"] + accounts.people.map(\.name)
    return enrolled + others.filter { !enrolled.contains($0) }
  }

  /// The methods for an sshd that takes no passwords.
  fileprivate static let keyHints = [SSHMethod.keyCode, .keyPasswordCode, .none].map {
    "sallyport pam enable sshd --sshd \($0.rawValue)"
  }

  /// The default method: what sshd asks for now, and a code.
  private static func usual(_ now: SSHSettings, hasAfterKey: Bool) throws(SSHTrouble) -> SSHMethod {
    let ways = now.ways
    guard ways.contains(where: { !$0.isWithoutPrompt }) else {
      throw SSHTrouble(
        .usage, "sshd takes keys and no passwords: choose with --sshd what it asks for",
        hints: keyHints)
    }
    guard ways.allSatisfy({ $0.contains("publickey") }) else { return .passwordCode }
    return hasAfterKey ? .keyCode : .keyPasswordCode
  }

  /// The users who get in by a key, if sshd's settings are not changed.
  private static func keyHolders(_ machine: Machine, _ accounts: AccountFacts) -> [String] {
    let survey = SSHFacts.settings(of: machine).value
    guard let settings = survey, settings.ways.contains(where: \.isWithoutPrompt) else { return [] }
    return accounts.people.filter {
      $0.hasKeys != false && ($0.uid != 0 || settings["permitrootlogin"] != "no")
    }.map(\.name)
  }

  /// Throws if sshd rejects its configuration, or if the values in effect are not those of the
  /// stage for some user.
  package func verify(_ stage: SSHStage) throws(SSHTrouble) {
    let complaint = machine.sshComplaint()
    let configuration = SSHConfiguration(of: machine)
    let survey = try SSHSurvey(
      of: machine, configuration, accounts, people: SSHPlan.names(accounts, enrolled))
    var found = survey.mismatches(
      with: stage, configuration, enrolled: enrolled, keyed: keyed)
    if found.isEmpty {
      found = SSHPlan.mismatches(of: machine, accounts, with: stage, keyed, enrolled: enrolled)
    }
    if !found.isEmpty { throw .shadowed(found) }
    if let complaint { throw .sshd(complaint) }
  }

  /// Of `match`: where sshd has other lists of methods for an account than the stage, from
  /// wherever. A block of somebody else may be about one member of a group, or one address. One by
  /// which people who are not enrolled have a key alone is told as an exception.
  private static func mismatches(
    of machine: Machine, _ accounts: AccountFacts, with stage: SSHStage, _ keyed: Set<String>,
    enrolled: [String]
  ) -> [SSHMismatch] {
    guard stage.method == .match else { return [] }
    let access = SSHAccess(of: machine, accounts)
    var found: [SSHMismatch] = []
    for account in accounts.accounts {
      guard let wanted = stage.needed(for: account.name, keyed: keyed).last else { continue }
      for connection in access.connections {
        guard case .seen(let entrances) = access.entrances(of: account, from: connection) else {
          continue
        }
        let open = entrances.filter { $0.refusal == nil }
        let lists = open.map { $0.methods.joined(separator: ",") }.joined(separator: " ")
        if open.isEmpty || lists == wanted.value { continue }
        let isBound = enrolled.contains(account.name) || keyed.contains(account.name)
        if !isBound, open.allSatisfy(\.methods.isWithoutPrompt) { continue }
        let isFirst = connection == access.connections.first
        let who = isFirst ? account.name : "\(account.name) (\(connection.name))"
        found.append(
          SSHMismatch(
            who: who, found: SSHSetting(wanted.keyword, lists), wanted: wanted,
            location: open[0].location ?? FileLocation(file: SSHStage.path)))
        break
      }
    }
    return found
  }
}

extension AccountFacts {
  /// Who is in the block for those with a key: the block for the others comes first.
  fileprivate func keyed(_ people: SSHPeople) -> [String] {
    let names = people.keyGroup.map { members(of: $0) } ?? people.keyUsers
    return names.filter { !people.aloneUsers.contains($0) }
  }
}

extension SSHPlan {
  /// In whose name the running sshd is asked what it offers, where that shows what it has read.
  package var witness: String? { keyed.sorted().first }
}

extension Machine {
  /// As of a plan, for what our file says.
  package func sshWitness(of stage: SSHStage) -> String? {
    stage.method == .match ? AccountFacts(of: self).keyed(stage.people).sorted().first : nil
  }

  /// The error of `sshd -t` about its configuration; nil if it accepts it, or if there is no sshd.
  package func sshComplaint() -> String? {
    switch run(["sshd", "-t"]) {
    case .absent: nil
    case .unseen(let reason): reason
    case .seen(let done): done.status == 0 ? nil : done.complaint
    }
  }

  package var hasSSHD: Bool { run(["sshd", "-t"]) != .absent }

  /// Makes the directory below /run without which sshd tells nothing of its settings, where no
  /// sshd has been started yet. It stays, as the one that sshd's init script makes: an sshd that is
  /// started meanwhile needs it.
  package func makeSSHDirectory() {
    let words = sshComplaint()?.split(separator: " ").suffix(5) ?? []
    guard words.dropLast().elementsEqual(["Missing", "privilege", "separation", "directory:"]),
      let path = words.last, path.hasPrefix("/")
    else { return }
    // SAFETY: the C string lives for the call.
    _ = unsafe mkdir(root + path, 0o755)
  }

  /// Whether there is a file of ours among sshd's settings.
  package var hasSSHFile: Bool { file(SSHStage.path) != .absent }

  /// Whether a key alone is enough, unless a Match block says otherwise.
  package func sshLetsKeysAlone() throws(SSHTrouble) -> Bool {
    try sshSettings().letsKeysAlone
  }

  /// What our file in sshd's configuration says; nil if there is none. Throws if it is not ours.
  package func sshStage() throws(SSHTrouble) -> SSHStage? {
    switch text(SSHStage.path) {
    case .absent: return nil
    case .unseen(let reason): throw .sshd(reason)
    case .seen(let text):
      if let stage = SSHStage(text: text) { return stage }
      throw SSHTrouble(
        .exists, "\(SSHStage.path) is not as this command writes it: it was not changed",
        hints: ["rm \(SSHStage.path)  # if nobody needs it", SSHTrouble.byHand])
    }
  }
}

extension SSHSettings {
  /// Throws unless sshd lets in by the password now: for a moment, it does so before PAM asks for a
  /// code.
  fileprivate func needPasswords(for method: SSHMethod) throws(SSHTrouble) {
    guard !ways.contains(["password"]), !ways.contains(["keyboard-interactive"]) else { return }
    throw SSHTrouble(
      .usage, "\(method.rawValue) needs an sshd that takes a password alone, and this one does not",
      hints: SSHPlan.keyHints)
  }

  /// The line by which sshd runs another service of PAM than the one that gets our lines.
  fileprivate func otherService(_ configuration: SSHConfiguration) -> SSHMismatch? {
    let name = self["pamservicename"]
    guard !name.isEmpty, name != "sshd" else { return nil }
    let line = configuration.lines.first { $0.keyword == "pamservicename" }
    return SSHMismatch(
      who: nil, found: SSHSetting("PAMServiceName", name),
      wanted: SSHSetting("PAMServiceName", "sshd"),
      location: line?.location ?? FileLocation(file: "/etc/ssh/sshd_config"))
  }
}
