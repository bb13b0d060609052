import OneTimePassword
import SallyportCore
import SallyportImport
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// One account with everything that a source has about it. It is imported whole or not at all.
struct ImportedPerson {
  /// As in the account database; without an account, as in the source.
  let name: [UInt8]
  let account: Account?
  /// The number of its first line.
  let line: Int?
  let path: String?
  private(set) var authenticators: [ImportedAuthenticator] = []
  private(set) var scratchCodes: [Secret] = []
  private(set) var remarks: [Remark] = []
  private(set) var obstacles: [Obstacle] = []

  init(_ first: Candidate, _ account: Account?) {
    self.account = account
    name = account?.name.bytes ?? first.user
    (line, path) = (first.line, first.path)
  }

  /// Adds another line about this user. If an authenticator is listed twice, the greater last
  /// accepted step or counter is kept.
  mutating func add(_ candidate: Candidate) {
    for remark in candidate.remarks where !remarks.contains(remark) { remarks.append(remark) }
    scratchCodes += candidate.scratchCodes
    if let obstacle = candidate.obstacle { obstacles.append(obstacle) }
    guard let new = candidate.authenticator else { return }
    let twin = authenticators.firstIndex {
      constantTimeEquals($0.secret, new.secret) && $0.parameters == new.parameters
    }
    guard let twin else { return authenticators.append(new) }
    if !remarks.contains(.doubled) { remarks.append(.doubled) }
    let places = [authenticators[twin].lastAccepted, new.lastAccepted].compactMap { $0 }
    authenticators[twin].lastAccepted = places.max()
  }

  /// Checks the rules that do not need the store. `force` accepts weak secrets.
  mutating func check(allowMissing: Bool, force: Bool) {
    if let account, account.uid == nil, !allowMissing {
      let missing = Obstacle("no-account", "there is no such user") { [$0.lookup] }
      obstacles.insert(missing, at: 0)
    }
    if authenticators.count > Enrollment.maximumAuthenticators {
      let entries = zip(names, authenticators).compactMap { name, one in
        one.entry.map { (number: $0, name: Optional(name)) }
      }
      obstacles.append(
        .tooMany(authenticators.count, most: Enrollment.maximumAuthenticators, entries))
    }
    for one in authenticators { check(one.secret, force: force) }
    checkSecrets()
  }

  /// As a change of an enrollment is checked: of two that give the same codes, each code would be
  /// accepted twice.
  private mutating func checkSecrets() {
    let names = names
    for (place, one) in authenticators.enumerated() {
      let other = authenticators[..<place].firstIndex {
        $0.parameters.giveCodes(of: one.parameters) && constantTimeEquals($0.secret, one.secret)
      }
      guard let other else { continue }
      let entries = [other, place].compactMap { at in
        authenticators[at].entry.map { (number: $0, name: Optional(names[at])) }
      }
      obstacles.append(.sameSecret(names[other], names[place], entries))
    }
  }

  private mutating func check(_ secret: Secret, force: Bool) {
    let bits = secret.count * 8
    let isConstant = (0..<secret.count).allSatisfy { secret[$0] == secret[0] }
    if secret.count > Secret.longestKey {
      obstacles.append(
        Obstacle(
          "secret-too-long",
          "the secret has \(secret.count) bytes, the maximum is \(Secret.longestKey)",
          enroll: "makes a new secret"))
    } else if secret.count < Secret.shortestKey, !force {
      obstacles.append(
        Obstacle(
          "weak-secret", "the secret has only \(bits) bits (--force imports it)",
          enroll: "makes a better one"))
    } else if isConstant, !force {
      obstacles.append(
        Obstacle(
          "constant-secret", "all bytes of the secret are the same (--force imports it)",
          enroll: "makes a better one"))
    } else if bits < 128 {
      remarks.append(.shortSecret(bits: bits))
    }
  }

  mutating func stop(_ obstacle: Obstacle) { obstacles.append(obstacle) }

  /// Whether all of the authenticators are already enrolled.
  func isEnrolled(in enrollment: Enrollment) -> Bool {
    authenticators.allSatisfy { one in
      enrollment.authenticators.contains { one.isSame(as: $0) }
    }
  }

  /// Whether one of them, a token here, is enrolled as what has a clock that can be set.
  func isEnrolledAsPhone(in enrollment: Enrollment) -> Bool {
    authenticators.contains { one in
      one.isToken
        && enrollment.authenticators.contains { one.isSame(as: $0) && $0.clockOffset == nil }
    }
  }

  /// The state with the source's last accepted steps and counters, where they are greater, and with
  /// these scratch codes used.
  func caughtUp(_ state: LoginState, with enrollment: Enrollment, _ scratchCodes: UInt64)
    -> LoginState
  {
    var state = state
    state.reconcile(with: enrollment)
    // After `reconcile` the two lists have the same order.
    for (index, stored) in enrollment.authenticators.enumerated() {
      let own = authenticators.first { $0.isSame(as: stored) }
      guard let last = own?.lastAccepted, index < state.authenticators.count else { continue }
      let before = state.authenticators[index].lastAccepted
      state.authenticators[index].lastAccepted = max(before ?? last, last)
    }
    state.backupCodes?.used |= scratchCodes
    return state
  }

  /// The enrolled scratch codes that are no longer in the user's file, as a bit mask. The other
  /// module deletes each code that is used.
  func scratchCodesUsedUp(in enrollment: Enrollment) throws(StoreTrouble) -> UInt64 {
    guard path != nil, let set = enrollment.backupCodes else { return 0 }
    var left: [[UInt8]] = []
    for code in scratchCodes {
      do throws(CryptoError) {
        left.append(try BackupCode.digest(code, salt: set.salt))
      } catch {
        throw .crypto(error)
      }
    }
    var used: UInt64 = 0
    for (index, digest) in set.scratchDigests.enumerated() where !left.contains(digest) {
      used |= 1 << UInt64(set.digests.count + index)
    }
    return used
  }

  /// The names of the authenticators here: those of the source where it has some, no two of which
  /// may look alike.
  var names: [Label] {
    authenticators.reduce(into: []) { names, one in
      let free = one.name.flatMap { names.first(like: $0) == nil ? $0 : nil }
      names.append(
        free
          ?? (one.isToken
            ? freeName(like: Label("token"), beside: names)
            : freeName(for: one.parameters.type, beside: names)))
    }
  }

  /// What to store, with a state as if the last codes had been accepted here.
  func enrollment(_ codes: BackupCodeSet?, at now: UnixTime) throws(CommandError)
    -> (Enrollment, LoginState)?
  {
    guard let account else { return nil }
    var list: [Authenticator] = []
    for (name, one) in zip(names, authenticators) {
      list.append(
        Authenticator(
          id: try freshIdentifier(), name: name, parameters: one.parameters,
          secret: one.secret, initialLastAccepted: one.lastAccepted, created: now,
          clockOffset: one.isToken ? 0 : nil))
    }
    let enrollment = Enrollment(
      id: try freshIdentifier(), user: account.name, uid: account.uid, created: now,
      authenticators: list, backupCodes: codes)
    var state = LoginState(initialFor: enrollment)
    for (index, one) in authenticators.enumerated() where index < state.authenticators.count {
      state.authenticators[index].drift = one.drift
    }
    return (enrollment, state)
  }
}
