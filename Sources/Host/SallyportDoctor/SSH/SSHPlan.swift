import Glibc
import PAMStack
import SallyportSupport

/// How `pam enable` will change sshd's settings; nothing is written yet.
package struct SSHPlan {
  package let method: SSHMethod
  /// What our file says now; nil if there is none.
  package let current: SSHStage?
  /// Whether the wanted values are in effect already, without a file of ours.
  package let isSetByOthers: Bool
  /// Users who will still get in by a key alone, each with the Match block that allows it.
  package let byKeyAlone: [String]
  /// Users who get in now but will not any more, each with the reason.
  package let lockedOut: [String]
  /// The names of the users who will still get in by a key alone.
  package let keyHolders: Set<String>
  /// The accounts of people whom sshd will not let in, whatever PAM says.
  package let shutOut: Set<String>
  /// What sshd accepts on the way to the method: nothing less than it asks for now.
  package let passing: SSHStage.Passing
  /// The accounts in the machine's own files.
  private let accounts: AccountFacts
  private let enrolled: [String]
  private let machine: Machine

  /// `asked` is the method that was given; `enrolled` are the names of enrolled users;
  /// `hasAfterKey` says that the PAM line already takes a key for the first factor. Returns nil if
  /// sshd is not installed and no method was given.
  package init?(
    _ asked: SSHMethod?, of machine: Machine, enrolled: [String], hasAfterKey: Bool
  ) throws(SSHTrouble) {
    if asked == nil, machine.run(["sshd", "-T"]) == .absent { return nil }
    (self.machine, self.enrolled) = (machine, enrolled)
    accounts = AccountFacts(of: machine)
    current = asked == SSHMethod.none ? nil : try machine.sshStage()
    if asked == SSHMethod.none {
      (method, isSetByOthers, passing) = (.none, true, .eitherOrder)
      (lockedOut, shutOut) = ([], [])
      byKeyAlone = SSHPlan.keyHolders(machine, accounts)
      keyHolders = Set(byKeyAlone)
      return
    }
    let configuration = SSHConfiguration(of: machine)
    let people = SSHPlan.people(accounts, enrolled)
    let before = try SSHSurvey(of: machine, configuration, accounts, people: people)
    if let other = before.base.otherService(configuration) { throw .shadowed([other]) }
    passing = before.letsKeysAlone ? .keyAlone : .eitherOrder
    if let named = asked ?? current?.method {
      method = named
    } else {
      method = try SSHPlan.usual(before.base, hasAfterKey: hasAfterKey)
    }
    let last = SSHStage(method: method)
    isSetByOthers =
      current == nil
      && before.mismatches(with: last, configuration, enrolled: enrolled).isEmpty
    var (after, planned) = (before, configuration)
    if !isSetByOthers {
      let changed = machine.assuming(sshFile: last.text)
      planned = SSHConfiguration(of: changed)
      after = try SSHSurvey(of: changed, planned, accounts, people: people)
      let found = after.mismatches(with: last, planned, enrolled: enrolled)
      if !found.isEmpty { throw .shadowed(found) }
    }
    byKeyAlone = after.exceptions(enrolled).map { part in
      let location = part.block.map { planned.blocks[$0].location.text } ?? ""
      return "\(listed(part.users)) (\(part.who ?? ""), \(location))"
    }
    keyHolders = Set(after.exceptions(enrolled).flatMap(\.users))
    lockedOut = SSHPlan.lockedOut(accounts, before: before, after: after, method)
    let outside = accounts.accounts.filter { [method, after] account in
      !after.settings(of: account.name).lets(account, needsPassword: method.needsPassword)
    }
    shutOut = Set(outside.filter(\.isPerson).map(\.name))
  }

  /// root, the enrolled users, and those who may have to enroll.
  private static func people(_ accounts: AccountFacts, _ enrolled: [String]) -> [String] {
    let others = ["root"] + accounts.people.map(\.name)
    return enrolled + others.filter { !enrolled.contains($0) }
  }

  /// The default method: what sshd asks for now, and a code.
  private static func usual(_ now: SSHSettings, hasAfterKey: Bool) throws(SSHTrouble) -> SSHMethod {
    let ways = now.ways
    guard ways.contains(where: { !$0.isWithoutPrompt }) else {
      let methods = SSHMethod.allCases.filter { $0 != .passwordCode }
      throw SSHTrouble(
        .usage, "sshd takes keys and no passwords: say what it is to ask for",
        hints: methods.map { "sallyport pam enable sshd --sshd \($0.rawValue)" })
    }
    guard ways.allSatisfy({ $0.contains("publickey") }) else { return .passwordCode }
    return hasAfterKey ? .keyCode : .keyPasswordCode
  }

  private static func lockedOut(
    _ accounts: AccountFacts, before: SSHSurvey, after: SSHSurvey, _ method: SSHMethod
  ) -> [String] {
    accounts.people.compactMap { account in
      let (now, then) = (before.settings(of: account.name), after.settings(of: account.name))
      guard now.lets(account, needsPassword: true),
        !then.lets(account, needsPassword: method.needsPassword)
      else { return nil }
      return "\(account.name) (\(lack(account, then, method)))"
    }
  }

  private static func lack(
    _ account: AccountFacts.Account, _ settings: SSHSettings, _ method: SSHMethod
  ) -> String {
    if account.uid == 0, settings["permitrootlogin"] != "yes" {
      return "PermitRootLogin \(settings["permitrootlogin"])"
    }
    if method != .passwordCode, account.hasKeys == false { return "no key" }
    return "no password"
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
      of: machine, configuration, accounts, people: SSHPlan.people(accounts, enrolled))
    let found = survey.mismatches(with: stage, configuration, enrolled: enrolled)
    if !found.isEmpty { throw .shadowed(found) }
    if let complaint { throw .sshd(complaint) }
  }
}

extension Machine {
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
        .exists, "\(SSHStage.path) is not as this command writes it, and was left as it is",
        hints: ["rm \(SSHStage.path)      if nobody needs it", SSHTrouble.byHand])
    }
  }
}

extension SSHSettings {
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
