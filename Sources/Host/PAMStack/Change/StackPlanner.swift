import SallyportSupport

/// Works out where our lines go. Reads through `StackDirectory` and writes nothing.
package struct StackPlanner {
  let directory: StackDirectory
  let service: String
  private let stack: ServiceStack
  /// The file that libpam reads for the service now.
  private let current: ServiceFile
  private let currentPath: String

  package init(_ service: String, in directory: StackDirectory) throws(StackRefusal) {
    let usual = service.utf8.allSatisfy { byte in
      byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "/")
        && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }
    guard usual, let first = service.first, first != ".", first != "-" else {
      throw StackRefusal(
        .usage, "\"\(shown(service))\" is not a valid service name", hints: ["ls /etc/pam.d"])
    }
    (self.directory, self.service) = (directory, service)
    stack = directory.stack(of: service)
    guard let path = stack.file, let content = directory.content(of: path) else {
      throw .noSuchService(service, known: directory.services())
    }
    (currentPath, current) = (path, ServiceFile(content, directory.rules))
  }

  /// The service's file in /etc/pam.d.
  var path: String { "/etc/pam.d/\(service)" }
  private var isVendors: Bool { currentPath != path }
  /// Whether the code is typed after the password in one field, and our line removes it.
  private var hasOneField: Bool { KnownServices.hasOneField(service) }

  /// The stacks with `file` in place of the service's own file; with `other`, those of a service
  /// that includes it.
  private func analysis(with file: ServiceFile, of other: String? = nil) -> StackAnalysis {
    let (path, bytes, usual) = (path, file.bytes, directory.files)
    let files = StackFiles(
      directories: usual.directories, includes: usual.includes,
      knowsAtInclude: usual.knowsAtInclude, rules: usual.rules,
      read: { $0 == path ? bytes : usual.read($0) })
    return directory.analysis(StackParser.parse(service: other ?? service, files))
  }

  /// Services that include this service's file.
  private func dependents() -> [String] {
    directory.services().filter { name in
      let stack = directory.stack(of: name)
      // `other` is a fallback, not a service.
      return name != "other" && stack.file != currentPath
        && PAMPhase.allCases.contains { phase in
          !stack.isOther(phase)
            && stack[phase].contains { [path, currentPath].contains($0.location.file) }
        }
    }
  }

  private func change(to file: ServiceFile?, _ analysis: StackAnalysis) -> StackChange {
    StackChange(
      service: service, path: path, before: isVendors ? nil : current, after: file,
      shown: current, analysis: analysis, dependents: dependents())
  }

  /// Throws if the changed file would harm a service that includes it.
  private func checkDependents(_ file: ServiceFile) throws(StackRefusal) {
    for name in dependents() {
      let (before, after) = (analysis(with: current, of: name), analysis(with: file, of: name))
      let known = before.findings + before.differences
      let found = after.findings(with: .harmsOthers)
      let new = (found + after.differences.filter { !found.contains($0) })
        .filter { !known.contains($0) }
      if !new.isEmpty {
        let other = shown(name)
        throw StackRefusal(
          .configuration,
          StackRefusal.list(
            "\(service) was not changed: \(other) includes its file, and would be broken", new),
          hints: [
            "in /etc/pam.d/\(other) include what \(service) includes, and not \(service) itself"
          ])
      }
    }
  }
}

// MARK: - Turning on

extension StackPlanner {
  package func enable(_ options: StackOptions) throws(StackRefusal) -> StackChange {
    let bare = current.withoutOurs
    let before = analysis(with: bare)
    try check(before, options)
    if options.keyOrPassword { try checkSkipped(bare, before.stack) }
    let base = options.afterKey ? try omittingPassword(bare, before.stack) : bare
    let (file, analysis) = try best(base, before.stack, options)
    if bare != current, file != current {
      let now = self.analysis(with: current)
      if !mends(now, analysis), let line = now.lines.first {
        let disable = sallyportCommand("pam disable", on: [service])
        throw StackRefusal(
          .exists,
          "\(line.location.text) has our line with other words: turn it off first",
          cause: .enabledAlready, hints: [disable])
      }
      try checkJumps(now)
    }
    try checkDependents(file)
    return change(to: file, analysis)
  }

  /// Whether the lines are as they are `now`, except for their place, the gate before them and
  /// `forward_pass`, the stack goes on behind them, and the walk finds less to object to: then one
  /// write replaces them.
  private func mends(_ now: StackAnalysis, _ after: StackAnalysis) -> Bool {
    guard after.weaknesses < now.weaknesses else { return false }
    return PAMPhase.allCases.allSatisfy { phase in
      let (old, new) = (now.words(phase), after.words(phase))
      return old == new && now.goesOn(phase) || old.isEmpty && phase != .auth
    }
  }

  /// Throws if a jump would lead elsewhere once our lines are not where they are `now`.
  private func checkJumps(_ now: StackAnalysis) throws(StackRefusal) {
    for phase in PAMPhase.allCases {
      if let jump = now.stack[phase].jumpOverOurs {
        throw StackRefusal(
          .configuration,
          "\(jump.location.text): its jump counts our line, and would skip another line without it",
          hints: ["remove the lines by hand, and make the jump one shorter"])
      }
    }
  }

  private func check(_ before: StackAnalysis, _ options: StackOptions) throws(StackRefusal) {
    if KnownServices.withoutAuth.contains(service) {
      throw refusal("\(service) runs no auth phase: nobody is asked for a code")
    }
    if ServiceFamily.unattended.contains(service) {
      throw refusal(
        "\(service) logs in without anybody there to type a code, and is left as it is")
    }
    let fails = before.findings(with: .keepsEverybodyOut)
    guard fails.isEmpty else { throw .unsafe(service, fails) }
    guard !before.stack.isOther(.auth), !before.stack[.auth].isEmpty else {
      throw refusal("\(service) has no auth lines of its own to add ours to")
    }
    if let line = before.line(.auth) {
      throw .enabledElsewhere(service, line.location)
    }
    if options.demand,
      KnownServices.forbidsDemand(service) || before.stack.isOther(.account)
    {
      throw refusal(
        "demand cannot be used in \(service): nobody can be asked in its account phase",
        hints: ["sallyport pam enable \(service)"])
    }
    if let modules = directory.modules, !directory.exists("\(modules)/pam_sallyport.so") {
      throw refusal(
        "the module is not installed: \(modules)/pam_sallyport.so is missing")
    }
  }

  private func refusal(_ text: String, hints: [String] = []) -> StackRefusal {
    StackRefusal(.configuration, text, hints: hints)
  }

  /// Comments out the lines that ask for the password. Throws if one of them does anything else.
  private func omittingPassword(_ bare: ServiceFile, _ stack: ServiceStack) throws(StackRefusal)
    -> ServiceFile
  {
    let phases = PAMPhase.allCases.filter { $0 != .auth }.flatMap { stack[$0] }
    let roots = Set(stack[.auth].filter { ModuleKind($0) == .password }.map(\.root))
    guard service == "sshd", !roots.isEmpty, !phases.contains(where: { roots.contains($0.root) })
    else {
      throw .withPassword(
        "/etc/pam.d/\(service) has no line for the password alone that could be left out", service)
    }
    let others = stack[.auth].filter { roots.contains($0.root) && $0.kind == .module }
      .filter { !$0.goesWithPassword }.map(\.moduleName)
    if !others.isEmpty { throw .moreThanPassword(service, modules: others) }
    let dependents = dependents()
    if !dependents.isEmpty { throw .passwordElsewhere(service, services: dependents) }
    return roots.reduce(bare) { $0.omitting($1) }
  }

  /// Throws if a login by a key and a code, which ends before the password, would leave out more
  /// than that.
  private func checkSkipped(_ bare: ServiceFile, _ stack: ServiceStack) throws(StackRefusal) {
    guard service == "sshd", let place = places(bare, stack, inFront: true).first else {
      throw .withPassword("/etc/pam.d/\(service) has no line that asks for a password", service)
    }
    let others = stack[.auth].filter {
      $0.kind == .module && $0.root.lowerBound >= place && !$0.goesWithPassword
    }
    if !others.isEmpty { throw .moreThanPassword(service, modules: others.map(\.moduleName)) }
    let dependents = dependents()
    if !dependents.isEmpty { throw .passwordElsewhere(service, services: dependents) }
  }

  private typealias Attempt = (file: ServiceFile, analysis: StackAnalysis)

  /// The first place for the auth line for which the walk finds nothing to object to; otherwise the
  /// first for which it finds only a way around the line.
  private func best(_ bare: ServiceFile, _ stack: ServiceStack, _ options: StackOptions)
    throws(StackRefusal) -> Attempt
  {
    let missing = missing(stack)
    if options.enroll == true, !missing.isEmpty {
      throw .cannotEnroll(service, missing)
    }
    let mayEnroll = missing.isEmpty && !hasOneField
    let ways = options.enroll.map { [$0] } ?? (mayEnroll ? [true, false] : [false])
    var second: Attempt?
    var refused: [StackFinding] = []
    let places = places(bare, stack, inFront: hasOneField || options.afterKey)
    for (place, enroll) in places.flatMap({ place in ways.map { (place, $0) } }) {
      let one = stopping(bare, stack, options, at: place, enroll: enroll)
      if refusals(of: one).isEmpty { return one }
      if second == nil, refusals(of: one, .unwanted).isEmpty { second = one }
      if refused.isEmpty { refused = refusals(of: one) }
    }
    if let second { return second }
    throw refusal(refused, options)
  }

  /// After a key, sshd may ask for the code alone; but not if a password had to be correct before.
  private func refusals(
    of attempt: Attempt, _ wanted: Consequences = [.unwanted, .wayAround]
  ) -> [StackFinding] {
    let differences = attempt.analysis.differences
    let mayBeAlone = service == "sshd" && !differences.contains(where: \.isCodeAlone)
    let found = attempt.analysis.findings(with: wanted).filter { !mayBeAlone || !$0.isCodeAlone }
    return found + differences.filter { !found.contains($0) }
  }

  private func refusal(_ findings: [StackFinding], _ options: StackOptions) -> StackRefusal {
    if hasOneField, options.enroll != true {
      let other = findings.first { if case .secondPrompt = $0 { true } else { false } }
      if findings.isEmpty || other != nil {
        return refusal(
          other.map { "\(service) was not changed: \($0.text)" }
            ?? "\(service) asks in a single field, but no module splits password and code",
          hints: [
            "less +/one.field /usr/share/doc/libpam-sallyport/recipes.md"
              + "      Clients with one field"
          ])
      }
    }
    if findings.isEmpty || findings.contains(where: \.isCodeAlone) && options.enroll != true {
      return refusal(
        "\(service) has no required first factor: a code alone would be enough")
    }
    if options.enroll == true { return .cannotEnroll(service, findings) }
    return .unsafe(service, findings)
  }

  /// Why `enroll` is not possible: our account and session lines have no stack of the service's own
  /// to go into.
  private func missing(_ stack: ServiceStack) -> [StackFinding] {
    let line = FileLocation(file: path, line: stack[.auth].first?.root.lowerBound ?? 1)
    return [PAMPhase.account, .session].filter { stack.isOther($0) }
      .map { .enrollWithoutLine(line, missing: $0) }
  }

  /// The lines of the file before which the auth line may go, the best first: after the first
  /// factor, further down, and before the first factor. Never before the entries that precede it,
  /// such as pam_rootok, which lets root pass.
  private func places(_ bare: ServiceFile, _ stack: ServiceStack, inFront: Bool) -> [Int] {
    if let end = bare.endOfProfiles { return [end + 1] }
    var roots: [ClosedRange<Int>] = []
    var factors: [Int] = []
    for entry in stack[.auth] {
      if roots.last != entry.root { roots.append(entry.root) }
      let kind = ModuleKind(entry)
      if entry.kind == .module, kind == .password || kind == .factor || kind == .unknown {
        factors.append(roots.count - 1)
      }
    }
    guard let first = factors.first, let last = factors.last else { return [] }
    let front = [roots[first].lowerBound]
    return inFront ? front : roots[last...].map { $0.upperBound + 1 } + front
  }

  /// With the gate before the auth line if a wrong password reaches the prompt without it, and does
  /// not with it.
  private func stopping(
    _ bare: ServiceFile, _ stack: ServiceStack, _ options: StackOptions, at place: Int, enroll: Bool
  ) -> Attempt {
    let plain = attempt(bare, stack, options, at: place, enroll: enroll)
    guard plain.analysis.asksAfterWrongPassword, directory.exists(StackGate.path) else {
      return plain
    }
    let gated = attempt(bare, stack, options, at: place, enroll: enroll, isGated: true)
    let isBetter = !gated.analysis.asksAfterWrongPassword && refusals(of: gated).isEmpty
    return isBetter ? gated : plain
  }

  private func attempt(
    _ bare: ServiceFile, _ stack: ServiceStack, _ options: StackOptions, at place: Int,
    enroll: Bool, isGated: Bool = false
  ) -> Attempt {
    let words = [
      options.afterKey ? "after-key" : nil, enroll ? "enroll" : nil,
      hasOneField ? "forward_pass" : nil, options.nullok ? "nullok" : nil,
    ]
    var lines: [(Int, String)] = []
    if options.keyOrPassword, let front = places(bare, stack, inFront: true).first {
      let control = "[success=done perm_denied=ignore default=die]"
      lines.append((front, line("auth    ", ["after-key"] + words, options, control: control)))
    }
    if isGated { lines.append((place, StackGate.line)) }
    lines.append((place, line("auth    ", words, options)))
    if !stack.isOther(.account), let first = stack[.account].first {
      lines.append(
        (first.root.lowerBound, line("account ", [options.demand ? "demand" : nil], options)))
    }
    if !stack.isOther(.session), let first = stack[.session].first {
      // pam_selinux with `close` must stay the first session module.
      let clears = first.moduleName == "pam_selinux" && first.arguments.contains("close")
      let place = clears ? first.root.upperBound + 1 : first.root.lowerBound
      lines.append((place, line("session ", [], options)))
    }
    var file = bare
    // From the end, so that the numbers of earlier lines do not change.
    for (place, line) in lines.reversed().sorted(by: { $0.0 > $1.0 }) {
      file.insert(line, before: place)
    }
    return (file, analysis(with: file))
  }

  private func line(
    _ phase: String, _ words: [String?], _ options: StackOptions, control: String = "required  "
  ) -> String {
    let store = options.store.map { store in
      store.contains(" ") || store.contains("]") ? "[store=\(store)]" : "store=\(store)"
    }
    let words = (words + [store]).compactMap { $0 }
    return (["\(phase) \(control) pam_sallyport.so"] + words).joined(separator: " ")
  }
}

extension StackAnalysis {
  /// The arguments of each of our lines in a phase.
  fileprivate func words(_ phase: PAMPhase) -> [[String]] {
    lines.filter { $0.phase == phase }
      .map { line in line.arguments.filter { $0 != "forward_pass" } }
  }

  /// Whether the stack goes on after each of our lines that succeeds.
  fileprivate func goesOn(_ phase: PAMPhase) -> Bool {
    lines.filter { $0.phase == phase }.allSatisfy { $0.controls[.success] == .ok }
  }
}

// MARK: - Turning off

extension StackPlanner {
  package func disable() throws(StackRefusal) -> StackChange {
    let bare = current.withoutOurs
    guard bare != current, !isVendors else {
      if let line = analysis(with: current).line(.auth) {
        throw .enabledElsewhere(service, line.location)
      }
      throw StackRefusal(
        .noInput, "/etc/pam.d/\(service) has no pam_sallyport.so line", cause: .notEnabled,
        hints: ["sallyport pam status"])
    }
    let (now, after) = (analysis(with: current), analysis(with: bare))
    // What `enable` wrote is removed, whatever the file was before.
    if !isVendors(bare), !isKept(bare) {
      try checkJumps(now)
      let fails = after.findings(with: .keepsEverybodyOut)
      // If nobody could log in before, removing our lines makes nothing worse.
      if !fails.isEmpty, !now.findings.contains(where: \.keepsEverybodyOut) {
        throw .unsafe(service, fails)
      }
      try checkDependents(bare)
    }
    return change(to: isVendors(bare) ? nil : bare, after)
  }

  /// Whether the vendor's file has this content, so that `enable` created the administrator's.
  private func isVendors(_ bare: ServiceFile) -> Bool {
    for directory in directory.files.directories.dropFirst() {
      if let content = self.directory.content(of: "\(directory)/\(service)") {
        return ServiceFile(content, self.directory.rules) == bare
      }
    }
    return false
  }

  /// Whether a backup that `enable` left behind has this content.
  private func isKept(_ bare: ServiceFile) -> Bool {
    directory.names(in: "/etc/pam.d").contains { name in
      name.hasPrefix("\(service).before-sallyport-")
        && directory.content(of: "/etc/pam.d/\(name)") == bare.bytes
    }
  }
}
