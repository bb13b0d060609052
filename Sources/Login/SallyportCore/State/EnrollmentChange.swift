package import OneTimePassword

/// A change of a user's enrollment as a value, which a login, the command and the service apply
/// alike.
package indirect enum EnrollmentChange: Sendable {
  /// Enrolls a user who is not enrolled.
  case create(Enrollment)
  /// Adds authenticators. A set of backup codes replaces the present one; nil keeps it.
  case add([Authenticator], backupCodes: BackupCodeSet?)
  /// Removes the authenticator with this name, which must not be the last one.
  case remove(Label)
  case rename(Label, to: Label)
  /// Replaces the set of backup codes.
  case renew(BackupCodeSet)
  /// Gives a pass, in the place of those that have ended when it was made.
  case give(Pass)
  /// Ends all passes.
  case revoke
  /// By the login with this random, which claimed a pass: these take the place of all
  /// authenticators, backup codes and passes. What they replace is suspended.
  case replace([Authenticator], backupCodes: BackupCodeSet?, claim: UInt64)

  /// Why a change cannot be carried out.
  package enum Flaw: Error, Equatable, Sendable {
    /// The user is enrolled already.
    case enrolled
    case noSuchAuthenticator(Label)
    case lastAuthenticator
    /// This one has the name, or one that looks like it.
    case nameTaken(Label)
    case tooManyAuthenticators
    /// Three passes are open.
    case tooManyPasses
    /// This one gives the same codes, so that each would be accepted twice.
    case secretTaken(Label)
  }
}

extension EnrollmentChange {
  /// Whether it gives somebody something to log in with, which nobody gets while he is blocked. A
  /// pass ends with the block.
  package var isNewWayIn: Bool {
    switch self {
    case .create, .add, .renew, .replace: true
    case .remove, .rename, .give, .revoke: false
    }
  }

  /// The enrollment after the change, which changes nothing else. `state`: of which passes have
  /// ended.
  package func applied(to enrollment: Enrollment, _ state: LoginState) throws(Flaw) -> Enrollment {
    var changed = enrollment
    switch self {
    case .create: throw .enrolled
    case .add(let authenticators, let backupCodes):
      for one in authenticators { try changed.add(one) }
      changed.backupCodes = backupCodes ?? changed.backupCodes
    case .remove(let name):
      let index = try changed.position(of: name)
      guard changed.authenticators.count > 1 else { throw .lastAuthenticator }
      changed.authenticators.remove(at: index)
    case .rename(let name, let new):
      let index = try changed.position(of: name)
      var others = changed.authenticators
      others.remove(at: index)
      if let other = others.map({ $0.name }).first(like: new) { throw .nameTaken(other) }
      changed.authenticators[index].name = new
    case .renew(let codes): changed.backupCodes = codes
    case .give(let pass):
      changed.passes = enrollment.openPasses(state, at: pass.created)
      let all = pass.enrolls ? enrollment.suspended.count : 0
      guard changed.passes.count < Pass.maximumOpen, all < Suspension.maximum else {
        throw .tooManyPasses
      }
      changed.passes.append(pass)
    case .revoke: changed.passes = []
    case .replace(let made, let codes, _):
      (changed.authenticators, changed.backupCodes, changed.passes) = (made, codes, [])
    }
    return changed
  }

  /// The state to store with the changed enrollment. Unless only a name or a pass changes, no
  /// origin is remembered any more, so that the user is asked again; where an authenticator was
  /// removed, as it may be somebody else's by now, none is known either.
  package func applied(to state: LoginState, of changed: Enrollment) -> LoginState {
    var state = state
    state.reconcile(with: changed)
    switch self {
    case .rename, .give, .revoke: break
    case .create, .add, .renew: state.forgetRemembered()
    case .remove, .replace: state.forgetOrigins()
    }
    return state
  }
}

extension LoginState {
  /// No place is known or remembered, as the authenticators may be somebody else's by now.
  package mutating func forgetOrigins() {
    forgetRemembered()
    slip = nil
    origins = []
  }
}

extension Enrollment {
  /// The index of the authenticator with this name.
  package func index(of name: Label) -> Int? { authenticators.firstIndex { $0.name == name } }

  fileprivate func position(of name: Label) throws(EnrollmentChange.Flaw) -> Int {
    guard let index = index(of: name) else { throw .noSuchAuthenticator(name) }
    return index
  }

  fileprivate mutating func add(_ authenticator: Authenticator) throws(EnrollmentChange.Flaw) {
    if let other = authenticators.map({ $0.name }).first(like: authenticator.name) {
      throw .nameTaken(other)
    }
    if let other = authenticators.first(where: { $0.givesCodes(of: authenticator) }) {
      throw .secretTaken(other.name)
    }
    guard authenticators.count < Enrollment.maximumAuthenticators else {
      throw .tooManyAuthenticators
    }
    authenticators.append(authenticator)
  }
}

extension Enrollment {
  /// Throws where one of its authenticators gives the codes of another one.
  package func checkSecrets() throws(EnrollmentChange.Flaw) {
    for (index, one) in authenticators.enumerated() {
      let other = authenticators[..<index].first { $0.givesCodes(of: one) }
      if let other { throw .secretTaken(other.name) }
    }
  }
}

extension Authenticator {
  fileprivate func givesCodes(of other: Authenticator) -> Bool {
    parameters.giveCodes(of: other.parameters) && constantTimeEquals(secret, other.secret)
  }
}

extension CodeParameters {
  /// Whether the codes of one secret are the same, or their last digits.
  package func giveCodes(of other: CodeParameters) -> Bool {
    type == other.type && algorithm == other.algorithm
  }
}

// What an enrollment with authenticators of these names may become: asked before a code is spent on
// the change, by the rules and in the order of `applied`.
extension [Label] {
  /// nil: a name that none of them has.
  package func check(adding name: Label?) throws(EnrollmentChange.Flaw) {
    if let name, let other = first(like: name) { throw .nameTaken(other) }
    guard count < Enrollment.maximumAuthenticators else { throw .tooManyAuthenticators }
  }

  package func check(removing name: Label) throws(EnrollmentChange.Flaw) {
    guard contains(name) else { throw .noSuchAuthenticator(name) }
    guard count > 1 else { throw .lastAuthenticator }
  }

  package func check(renaming name: Label, to new: Label) throws(EnrollmentChange.Flaw) {
    guard contains(name) else { throw .noSuchAuthenticator(name) }
    if let other = filter({ $0 != name }).first(like: new) { throw .nameTaken(other) }
  }
}
