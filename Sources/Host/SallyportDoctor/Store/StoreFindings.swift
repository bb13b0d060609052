import Glibc
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Problems of the store. Pure.
struct StoreFindings {
  let store: StoreFacts
  /// The `--store` for the commands that fix a finding.
  let option: String?
  private let area = Area.store

  var all: [Finding] {
    if store.isClosed {
      let fix = Fix.command("sudo sallyport doctor")
      return [
        .unseen("store-closed", area, "only root can read the store: not checked", fixes: [fix])
      ]
    }
    return [parent, label, machine, directories, tokens, decoy, leftovers].compactMap { $0 } + space
      + [fileSystem, writing].compactMap { $0 } + store.users.flatMap(findings)
      + RenamedFindings(store: store, option: option).all + people
  }

  /// One of our commands, for this store.
  private func sallyport(_ verb: String, _ user: String? = nil, _ options: String = "") -> Fix {
    .command(Invocation(verb: "doctor", user: user, store: option).command(verb, options))
  }

  private func finding(
    _ id: String, _ severity: Severity, _ error: StoreTrouble, of user: String? = nil,
    effect: Effect? = nil
  ) -> Finding {
    let invocation = Invocation(verb: "doctor", user: user, store: option)
    let message = Message(error, at: invocation)
    let fixes = message.hints.map(fix)
    return Finding(id, area, message.text, severity: severity, fixes: fixes, effect: effect)
  }

  /// The command in a hint, without its remark; as advice if it only shows something.
  private func fix(_ hint: String) -> Fix {
    let command = hint.split(separator: "  # ").first.map(String.init) ?? hint
    let acts = ["chmod ", "chown ", "sallyport "].contains { command.hasPrefix($0) }
    return acts ? .command(command) : .advice(parts: [command])
  }

  // MARK: the whole

  private var parent: Finding? {
    switch store.error {
    case nil: return nil
    case .noStore(let path):
      return .error(
        "store-missing", area, "there is no store \(path)", fixes: [sallyport("prepare")],
        effect: .locksOut("everybody who is asked for a code"))
    case .some(let found):
      return finding(
        "store-parent", .error, found, effect: .locksOut("everybody who is asked for a code"))
    }
  }

  private var label: Finding? {
    guard let label = store.label else { return nil }
    let path = shellQuoted(store.path)
    let isUsual = store.path == Store.usualRoot
    let type = "semanage fcontext -a -t \(StoreLabel.type) \(shellQuoted(store.path + "(/.*)?"))"
    let restore = "restorecon -R \(path)"
    return Finding(
      "store-label", area,
      "the SELinux type of \(label.path) is \(label.type), not \(StoreLabel.type): "
        + "logins \(label.isEnforced ? "are" : "would be") kept from it",
      severity: label.isEnforced ? .error : .warning,
      fixes: isUsual
        ? [.command(restore), .advice("the policy is in the package pam-sallyport-selinux")]
        : [.command("\(type) && \(restore)")],
      effect: label.isEnforced ? .locksOut("everybody who is asked for a code") : nil)
  }

  private var machine: Finding? {
    if store.error != nil { return nil }
    if let error = store.markError { return finding("store-machine", .warning, error) }
    guard let parts = store.otherMachine else { return nil }
    if parts.isEmpty, !store.notTakenOver.isEmpty {
      return .warning(
        "store-machine", area,
        "this store was made on another machine, and prepare could not take over "
          + "\(listed(store.notTakenOver, 3)): codes used there are good here once it can be read",
        fixes: [sallyport("prepare", nil, "--new-machine")])
    }
    if parts.isEmpty {
      return .ok("store-machine", area, "the store was made on this machine")
    }
    let mark = shellQuoted("\(store.path)/machine")
    return .warning(
      "store-machine", area, MachineMark.copyText(parts),
      fixes: [
        sallyport("prepare", nil, "--new-machine"),
        .advice(parts: [
          "if the other machine is gone:", "rm \(mark) && \(sallyport("prepare").text)",
        ]),
      ])
  }

  private var directories: Finding? {
    let open = store.directories.sorted { $0.key < $1.key }.filter { $0.value.mode & 0o055 != 0 }
    if store.error != nil { return nil }
    guard let first = open.first else {
      return .ok("store-directories", area, "the directories are closed to others")
    }
    let mode = String(first.value.mode & 0o777, radix: 8)
    return .warning(
      "store-directories", area, "\(first.key) shows others who is enrolled (mode \(mode))",
      fixes: open.map { .command("chmod 0700 \(shellQuoted($0.key))") })
  }

  /// No login needs them.
  private var tokens: Finding? {
    if store.error != nil { return nil }
    if let error = store.tokenError { return finding("store-tokens", .warning, error) }
    if store.tokens == 0 { return nil }
    return .ok("store-tokens", area, "the inventory of tokens can be read")
  }

  private var decoy: Finding? {
    guard let error = store.decoyError else {
      return .ok("store-decoy", area, "the decoy is intact")
    }
    if store.error != nil { return nil }
    switch error {
    case .state(_, .crypto): return nil
    case .noStore, .incomplete, .malformed, .state, .foreignState, .unsettled:
      return .warning(
        "store-decoy", area,
        "the decoy is missing or broken: answers tell strangers who is enrolled",
        fixes: [sallyport("prepare")])
    case .system, .unsafe, .otherUser, .otherUID, .busy, .exists, .service, .crypto, .outOfMemory:
      return finding("store-decoy", .warning, error)
    }
  }

  private var leftovers: Finding {
    if store.leftovers.isEmpty {
      return .ok("store-leftovers", area, "nothing is left over from a crash")
    }
    return .warning(
      "store-leftovers", area,
      "\(listed(store.leftovers, 1)) is left over from a crash and can hold a secret",
      fixes: [sallyport("prepare")])
  }

  // MARK: the disk

  private var space: [Finding] {
    guard let disk = store.disk.value else { return [] }
    var found: [Finding] = []
    if disk.blocks > 0, disk.freeBlocks < disk.blocks / 20 {
      found.append(
        .warning(
          "store-space", area,
          "\(disk.freeBlocks * 100 / disk.blocks) % of the disk is free: logins still work, "
            + "enrolling does not", fixes: [.advice(parts: ["df -h \(shellQuoted(store.path))"])]))
    }
    if disk.files > 0, disk.freeFiles < disk.files / 20 {
      found.append(
        .warning(
          "store-inodes", area,
          "\(disk.freeFiles * 100 / disk.files) % of the disk's inodes are free: enrolling "
            + "needs three", fixes: [.advice(parts: ["df -i \(shellQuoted(store.path))"])]))
    }
    return found.isEmpty ? [.ok("store-space", area, "the disk has free space")] : found
  }

  private var fileSystem: Finding? {
    guard let disk = store.disk.value else { return nil }
    if let kind = disk.kind {
      let (reason, advice) = kind.problem
      return .warning(
        "store-file-system", area, "the store is on \(kind.name): \(reason)",
        fixes: [.advice(advice)])
    }
    let copied = store.users.filter { $0.isInPlace == false }
    guard let first = copied.first else {
      return .ok("store-file-system", area, "the file system writes in place")
    }
    return .warning(
      "store-copy-on-write", area,
      "the file system would copy \(counted(copied.count, "state")) at each write, such as "
        + "\(first.directory): on a full disk these users cannot log in",
      fixes: [first.name.map { sallyport("enroll", $0, "--force") } ?? .advice("lsattr -R")])
  }

  private var writing: Finding? {
    switch store.writing {
    case .works:
      return store.error == nil
        ? .ok("store-writing", area, "a state can be created, locked, changed and read") : nil
    case .fails(let step, let number):
      let isFull = step == .make || step == .fill
      let full = isFull && [ENOSPC, EDQUOT].contains(number)
      return Finding(
        "store-writing", area,
        full
          ? "nobody can be enrolled: \(errnoText(number))"
          : "a state cannot be written: \(errnoText(number))", severity: full ? .warning : .error,
        fixes: [fix(forWriting: number)],
        effect: full ? nil : .locksOut("everybody who is asked for a code"))
    }
  }

  private func fix(forWriting number: Int32) -> Fix {
    let path = shellQuoted(store.path)
    switch number {
    case EROFS: return .command("mount -o remount,rw \"$(findmnt -n -o TARGET -T \(path))\"")
    case EACCES, EPERM: return .command("restorecon -Rv \(path)")
    case ENOSPC: return .advice(parts: ["df -h \(path); df -i \(path)"])
    case _: return .advice("dmesg")
    }
  }

  // MARK: the enrollments

  private func findings(of user: UserFacts) -> [Finding] {
    // RenamedFindings tells of it.
    if user.holder != nil { return [] }
    let name = user.name ?? user.directory
    if let error = user.error { return [unusable(user, name, error)] }
    return [ahead(user, name), held(user, name), rolledBack(user, name), throttled(user, name)]
      .compactMap { $0 }
  }

  private func unusable(_ user: UserFacts, _ name: String, _ error: StoreTrouble) -> Finding {
    if case .otherUID(_, let recorded, nil) = error {
      guard store.knowsAllAccounts else { return unseen(name, recorded) }
      return .warning(
        "user-no-account", area, "\(name) is enrolled but has no account (it was uid \(recorded))",
        fixes: [
          .advice(parts: [
            "if the account got another name:",
            "sallyport adopt NAME --from \(shellQuoted(name))",
          ]),
          sallyport("unenroll", name, "--force --allow-missing --uid \(recorded)"),
        ],
        ofUser: Finding.OfUser(name: name, before: "", after: "are enrolled but have no account"))
    }
    var finding = finding("user-unusable", .error, error, of: user.name, effect: .locksOut(name))
    let reason = finding.text.replacing(user.directory, with: "\(store.path)/users/*")
    finding.ofUser = Finding.OfUser(
      name: name, before: "the enrollments of ", after: "cannot be used (\(reason))")
    return finding
  }

  /// Deleted, or a source of accounts is away: then an enrollment that is removed is missing later.
  private func unseen(_ name: String, _ recorded: UInt32) -> Finding {
    Finding.unseen(
      "user-unseen", area,
      "\(name) is enrolled (uid \(recorded)) and is not found: deleted, or a source of "
        + "accounts in nsswitch.conf is away",
      fixes: [.advice(parts: [lookup(of: name, in: "passwd")])],
      ofUser: Finding.OfUser(
        name: name, before: "",
        after: "are enrolled and are not found: deleted, or a source of accounts is away"))
  }

  private func ahead(_ user: UserFacts, _ name: String) -> Finding? {
    guard let until = user.aheadUntil else { return nil }
    let time = CalendarDate(until, inUTC: true)?.internetText ?? "\(until.seconds)"
    let help = user.backupCodesLeft > 0 ? "; backup codes work" : ""
    if user.isPaused {
      let why = "(prepare --new-machine, a damaged state, or the clock was ahead)"
      return .warning(
        "user-ahead", area, "codes of \(name) are refused until \(time) \(why)\(help)",
        fixes: help.isEmpty ? [sallyport("backup-codes", name, "--regenerate")] : [],
        ofUser: Finding.OfUser(
          name: name, before: "codes of ", after: "are refused for some minutes \(why)"))
    }
    return .error(
      "user-ahead", area,
      "the last accepted code of \(name) is ahead of the clock; codes are refused until \(time)"
        + help,
      fixes: [sallyport("resync", name)], effect: .locksOut(name),
      ofUser: Finding.OfUser(
        name: name, before: "the last accepted codes of ",
        after: "are ahead of the clock; codes are refused for now"))
  }

  private func held(_ user: UserFacts, _ name: String) -> Finding? {
    guard let counter = user.heldCounters.first else { return nil }
    return .warning(
      "user-counter", area,
      "the counter \"\(counter)\" of \(name) came from another machine: its codes are refused "
        + "until it is synchronized", fixes: [sallyport("resync", name)],
      ofUser: Finding.OfUser(
        name: name, before: "the counters of ",
        after: "came from another machine: their codes are refused until they are synchronized"))
  }

  /// A file that was created later than it was modified is a copy, from a backup or another
  /// machine.
  private func rolledBack(_ user: UserFacts, _ name: String) -> Finding? {
    guard user.state.born > user.state.modified + 2 else { return nil }
    let what = "backup codes" + (user.usesCounters ? ", passes and counters" : " and passes")
    return .warning(
      "user-restored", area,
      "the state of \(name) was restored from a copy: \(what) used since the copy was "
        + "made are valid again; blocks and the acts of the log may be as old as the copy",
      fixes: [
        user.usesCounters
          ? sallyport("enroll", name, "--force") : sallyport("backup-codes", name, "--regenerate")
      ] + (user.usesCounters ? [] : [sallyport("pass", name, "--revoke")])
        + [sallyport("list", nil, "--blocked")],
      ofUser: Finding.OfUser(
        name: name, before: "the states of ",
        after: "were restored from a copy (\(what) used since then are valid again)"))
  }

  private func throttled(_ user: UserFacts, _ name: String) -> Finding? {
    guard user.waits.known != 0 || user.waits.other != 0 else { return nil }
    let places = user.waits.known != 0 ? "known places" : "other places"
    let wait = user.waits.known != 0 ? user.waits.known : user.waits.other
    let next = wait.map { "next try in \(durationText($0))" } ?? "no more are accepted"
    return .warning(
      "user-throttled", area,
      "\(name) has no tries left from \(places), \(next); backup codes work; was it a stranger?",
      fixes: [sallyport("unlock", name)],
      ofUser: Finding.OfUser(
        name: name, before: "", after: "have no tries left from \(places) (a stranger?)"))
  }

  private var people: [Finding] {
    let isFine = store.error == nil && store.users.allSatisfy { $0.error == nil }
    return isFine
      ? [.ok("users", area, "\(counted(store.users.count, "enrollment")) can be read")] : []
  }
}
