import OneTimePassword
import PAMSallyport
import PAMStack
import SallyportCore
import SallyportLogin
import SallyportSystem

/// What is known of the person whose login is rehearsed, beside the account database.
struct KnownPerson {
  /// nil for a name that nobody can be enrolled under.
  let account: Account?
  /// In the files of this machine, and in the fleet.
  let enrollment, inFleet: KnownEnrollment
  let note: UserNote.Level?
  /// Whether root has blocked the person on this machine.
  var isBlocked = false
  /// What was set for the person in the fleet.
  var noteInFleet: UserNote.Level? = nil
  let isMember: (_ group: [UInt8]) -> Tristate
}

/// One login through the stacks of one service, which takes place in doctor alone.
struct Rehearsal {
  /// How it ends.
  enum End {
    case isIn(RehearsedHandle)
    case isOut(RehearsedHandle)
    /// It hangs on what this module returns; nil if there are too many paths.
    case open(StackEntry?)
  }

  let stack: ServiceStack
  var login: RehearsedLogin
  let person: KnownPerson
  let answers: ModuleAnswers
  let policies: PolicySources
  let now: UnixTime

  /// What has come about so far, and the first module that might have returned something else.
  private typealias Path = (handle: RehearsedHandle, doubt: StackEntry?)

  /// Handles of one login that are followed at most.
  private static let most = 256

  /// The end after these steps, one after the other.
  func end(of steps: [LoginSteps.Step]) -> End {
    end(of: steps[...], from: [(RehearsedHandle(), nil)])
  }

  private func end(of steps: ArraySlice<LoginSteps.Step>, from paths: [Path]) -> End {
    guard let step = steps.first else {
      return paths.first.map { .isIn($0.handle) } ?? .open(nil)
    }
    var ends: [End] = []
    for field in step.answers.fields(of: login.person) {
      var rehearsal = self
      rehearsal.login.accepted = step.accepted
      rehearsal.login.asksInAccount = step.asksInAccount
      rehearsal.login.field = field
      let end = rehearsal.end(of: step.phases, from: paths) {
        self.end(of: steps.dropFirst(), from: $0)
      }
      // Of what may be typed in one field, the person types what lets in.
      if case .isIn = end { return end }
      ends.append(end)
    }
    let open = ends.first { if case .open = $0 { true } else { false } }
    return open ?? ends.first ?? .open(nil)
  }

  private func end(of phases: [PAMPhase], from starts: [Path], then next: ([Path]) -> End) -> End {
    var paths = starts
    for phase in phases {
      var (passing, failing) = ([Path](), [(path: Path, verdict: PAMCode)]())
      for path in paths {
        let start = left(path.handle, for: phase)
        guard let ends = stack.ends(of: phase, from: start, answer) else { return .open(nil) }
        for end in ends {
          let found = (end.state, path.doubt ?? end.doubt)
          if isPassed(end) { passing.append(found) } else { failing.append((found, end.verdict)) }
        }
        if passing.count + failing.count > Rehearsal.most { return .open(nil) }
      }
      if let last = failing.last {
        if passing.isEmpty { return .isOut(barred(last.path.handle, in: phase, last.verdict)) }
        return .open((failing.map(\.path) + passing).lazy.compactMap(\.doubt).first)
      }
      paths = passing
    }
    return next(paths)
  }

  /// sshd's session phase is another process, which has PAM's environment alone.
  private func left(_ handle: RehearsedHandle, for phase: PAMPhase) -> RehearsedHandle {
    var handle = handle
    if login.accepted != nil, phase == .session { handle.mark = nil }
    return handle
  }

  private func isPassed(_ end: StackEnd<RehearsedHandle>) -> Bool {
    if end.verdict == .success { return true }
    let isOld = end.verdict == .passwordExpired
    guard end.verdict == .newPasswordRequired || isOld else { return false }
    switch login.renewal {
    case .left: return true
    case .byOwner: return !isOld && login.person.password != nil
    case .never: return false
    }
  }

  private func barred(
    _ handle: RehearsedHandle, in phase: PAMPhase, _ verdict: PAMCode
  ) -> RehearsedHandle {
    var handle = handle
    let isOld = verdict == .newPasswordRequired || verdict == .passwordExpired
    if handle.barrier == nil, let entry = stack[phase].last {
      handle.note(isOld ? .expired : .stackShut, at: entry)
    }
    return handle
  }

  // MARK: modules

  private func answer(_ entry: StackEntry, _ handle: RehearsedHandle) -> [(
    PAMCode, RehearsedHandle
  )] {
    if entry.moduleName == "pam_sallyport", !answers.isMissing(entry) {
      return [ours(entry, handle)]
    }
    return answers.of(entry, to: login, handle).map { answer in
      var left = handle
      if let barrier = answer.barrier { left.note(barrier, at: entry) }
      if let password = answer.password { left.password = Secret(password.utf8) }
      if answer.isByUnix { left.isByUnix = true }
      return (answer.code, left)
    }
  }

  /// The module's own answer.
  private func ours(_ entry: StackEntry, _ handle: RehearsedHandle) -> (PAMCode, RehearsedHandle) {
    let arguments = ModuleArguments(entry.arguments.map { Array($0.utf8) })
    let phase: Phase = entry.phase == .auth ? .auth : entry.phase == .account ? .account : .session
    // Root's word stands in the usual store.
    let isBlocked = person.isBlocked && !arguments.hasOwnStore
    let authority = RehearsedAuthority(
      person.enrollment, inFleet: person.inFleet, note: person.note,
      noteInFleet: person.noteInFleet, isBlocked: isBlocked, at: now)
    let application = RehearsedApplication(
      login, handle, isOneField: arguments.forwardPass, in: phase,
      needsCode: { authority.isAsking })
    let store = RehearsedStore(
      person.account, policies, isBlocked: isBlocked, groups: person.isMember)
    let code: ReturnCode
    switch phase {
    case .auth:
      code = authenticate(
        application, arguments, store: store, service: authority, isServed: true)
    case .account:
      code = manageAccount(
        application, arguments, store: store, service: authority, isServed: true)
    case .session: code = openSession(application)
    }
    var left = application.handle
    if phase != .session { left.line = entry.location }
    // What comes of the questions that follow is the person's choice.
    let isEnrolling = phase == .account && left.isEnrolling && !handle.isEnrolling
    if isEnrolling { (left.mark, left.hasEnvironmentMark) = (nil, false) }
    let answer = isEnrolling ? .success : PAMCode(number: Int(code.code)) ?? .permissionDenied
    note(answer, of: entry, arguments, by: authority, under: store, in: &left)
    return (answer, left)
  }

  /// Why our line let pass, or did not.
  private func note(
    _ answer: PAMCode, of entry: StackEntry, _ arguments: ModuleArguments,
    by authority: RehearsedAuthority, under store: RehearsedStore, in handle: inout RehearsedHandle
  ) {
    if let asked = authority.asked { handle.asking = asked }
    if answer == .success || answer == .ignore {
      guard entry.phase == .auth, authority.asked == nil else { return }
      let isByLine = authority.opening == .voluntary && arguments.base.enrollment == .voluntary
      let isDisabled = store.policy?.isEnabled == false
      let opening = isDisabled ? .disabled : authority.opening
      handle.opening = isByLine && store.line(of: .enrollment) == nil ? .nullok : opening
      handle.openedAt = store.line(of: isDisabled ? .state : .enrollment) ?? entry.location
      return
    }
    let isUnkeyed = arguments.afterKey && entry.phase == .auth && !isAfterKey
    // Another line is for those without a key.
    if isUnkeyed, entry.goesOnWithoutKey { return }
    let ownBarrier: Barrier? =
      arguments.isRefusing ? .wrongWord : isUnkeyed ? .afterKey : person.isBlocked ? .blocked : nil
    if let barrier = ownBarrier ?? authority.barrier { return handle.note(barrier, at: entry) }
    // A wrong code is no reason, but one field is, which cannot hold the code beside a password.
    let isShort = login.field != nil && !arguments.forwardPass
    if authority.asked == nil || isShort { handle.note(.noPrompt, at: entry) }
  }

  private var isAfterKey: Bool {
    login.accepted?.contains { ["publickey", "hostbased", "gssapi-with-mic"].contains($0) } == true
  }
}
