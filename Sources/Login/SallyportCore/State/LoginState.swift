import OneTimePassword

/// The values that logins change. They are read, decided on and written under the user's lock.
package struct LoginState: Equatable, Sendable {
  /// How many origins are known: those of the latest logins.
  package static let maximumOrigins = 10
  /// How many a state may have that is read, and saved as it is: a later version may keep this
  /// number.
  package static let readableOrigins = 32

  /// The `id` of the enrollment to which the state belongs.
  package let enrollmentID: UInt64
  package var authenticators: [AuthenticatorState]
  package var backupCodes: BackupCodeState?
  package var passes: [PassState]
  package var known: Bucket
  package var other: Bucket
  /// nil if there is none, or if it does not count any more.
  package var slip: Slip?
  package var refunds: Refunds
  /// The most recent one first.
  package var origins: [KnownOrigin]
  /// The most recent one first.
  package var remembered: [RememberedOrigin]
  package var notices = OwnerNotices()

  package init(
    enrollmentID: UInt64, authenticators: [AuthenticatorState] = [],
    backupCodes: BackupCodeState? = nil, passes: [PassState] = [], known: Bucket = .full,
    other: Bucket = .full,
    slip: Slip? = nil, refunds: Refunds = Refunds(), origins: [KnownOrigin] = [],
    remembered: [RememberedOrigin] = []
  ) {
    self.enrollmentID = enrollmentID
    self.authenticators = authenticators
    self.backupCodes = backupCodes
    self.passes = passes
    self.known = known
    self.other = other
    self.slip = slip
    self.refunds = refunds
    self.origins = origins
    self.remembered = remembered
  }

  /// The state of a newly enrolled user.
  package init(initialFor enrollment: Enrollment) {
    self.init(enrollmentID: enrollment.id)
    reconcile(with: enrollment)
  }

  /// The latest use of an authenticator or backup code; nil if none has been used.
  package var lastUse: Use? {
    var latest = backupCodes?.lastUse
    for use in authenticators.compactMap({ $0.lastUse }) where use.time >= latest?.time ?? use.time
    {
      latest = use
    }
    return latest
  }

  /// Matches the ids to those of the enrollment: one that is missing here gets its initial values,
  /// and one that the enrollment lacks is dropped. So the two files need not be renamed together;
  /// the enrollment is written first.
  package mutating func reconcile(with enrollment: Enrollment) {
    let stored = authenticators
    authenticators = []
    for authenticator in enrollment.authenticators {
      var state = AuthenticatorState(
        id: authenticator.id, lastAccepted: authenticator.initialLastAccepted)
      for known in stored where known.id == authenticator.id { state = known }
      if state.clock == nil || authenticator.clockOffset == nil {
        state.clock = TokenClock(startOf: authenticator)
      }
      state.clock?.bound(by: authenticator.parameters.type)
      authenticators.append(state)
    }
    if let set = enrollment.backupCodes {
      if backupCodes?.setID != set.id { backupCodes = BackupCodeState(setID: set.id, used: 0) }
    } else {
      backupCodes = nil
    }
    let known = passes
    passes = []
    for pass in enrollment.passes {
      var state = PassState(id: pass.id)
      for stored in known where stored.id == pass.id { state = stored }
      passes.append(state)
    }
  }

  /// For a state after which a later one may have been lost. Every code counts as used that a login
  /// may have accepted up to now under any policy, with a counter the next one, which is nearly
  /// always the one. No pass is good any more. No origin is remembered and no slip is kept, as they
  /// may have been dropped since. What else was lost is unknown: a backup code that was used then
  /// works once more.
  package mutating func distrustLoss(of enrollment: Enrollment, at now: UnixTime) {
    reconcile(with: enrollment)
    forgetRemembered()
    slip = nil
    for pass in enrollment.passes.indices where pass < passes.count {
      passes[pass] = PassState(
        id: passes[pass].id, used: UInt8.max, seen: passes[pass].seen)
    }
    for (index, authenticator) in enrollment.authenticators.enumerated()
    where index < authenticators.count {
      let last = authenticators[index].lastAccepted
      switch authenticator.parameters.type {
      case .totp(let period):
        let latest = authenticators[index].latestStep(at: now, of: period)
        authenticators[index].lastAccepted = max(last ?? 0, latest)
      case .hotp:
        authenticators[index].lastAccepted = last.map { $0 < UInt64.max ? $0 + 1 : $0 } ?? 0
      }
    }
  }

  /// Does not trust stored times in the future. Such a time of a bucket or a refund is set to now,
  /// so that it earns no credit; a remembered origin or a slip with one is dropped. Known origins
  /// stay: their times decide nothing, and setting the clock back by a second must not make the
  /// owner a stranger. So does that of a token's clock: it earns nothing until it is past.
  package mutating func distrustFuture(_ now: UnixTime) {
    known.distrustFuture(now)
    other.distrustFuture(now)
    refunds.distrustFuture(now)
    if let slip, slip.time > now { self.slip = nil }
    var believed: [RememberedOrigin] = []
    for one in remembered where one.granted <= now { believed.append(one) }
    remembered = believed
  }
}

/// The values of an authenticator that logins change.
package struct AuthenticatorState: Equatable, Sendable {
  package let id: UInt64
  /// The last accepted time step (TOTP, RFC 6238 §5.2) or counter (HOTP); only greater ones are
  /// accepted. nil if there was none.
  package var lastAccepted: UInt64?
  /// The offset of the authenticator's clock at its last success or resync, in time steps; negative
  /// if its clock is behind. 0 for HOTP.
  package var drift: Int32
  package var lastUse: Use?
  /// nil: a phone's, which is set to the right time, or an HOTP.
  package var clock: TokenClock?

  package init(
    id: UInt64, lastAccepted: UInt64?, drift: Int32 = 0, lastUse: Use? = nil,
    clock: TokenClock? = nil
  ) {
    self.id = id
    self.lastAccepted = lastAccepted
    self.drift = drift
    self.lastUse = lastUse
    self.clock = clock
  }

  /// Records an accepted code: none at or below `position` is accepted again.
  mutating func accept(_ position: UInt64, drift: Int32, _ type: AuthenticatorType, _ use: Use) {
    lastAccepted = position
    if case .totp(let period) = type { clock?.learn(position, of: period, at: use.time) }
    self.drift = drift
    lastUse = use
  }
}

/// When, where and through which PAM service something was last accepted. It is only shown.
package final class Use: Equatable, Sendable {
  package let time: UnixTime
  package let origin: Origin
  /// nil if the service's name is not a valid `Label`.
  package let service: Label?

  package init(time: UnixTime, origin: Origin, service: Label?) {
    self.time = time
    self.origin = origin
    self.service = service
  }

  package static func == (a: Use, b: Use) -> Bool {
    a.time == b.time && a.origin == b.origin && a.service == b.service
  }
}

/// An origin that has logged in.
package struct KnownOrigin: Equatable, Sendable {
  package let origin: NetworkAddress
  package let lastSeen: UnixTime

  package init(origin: NetworkAddress, lastSeen: UnixTime) {
    self.origin = origin
    self.lastSeen = lastSeen
  }
}

extension LoginState {
  /// Whether wrong codes from there are charged to the bucket of known origins.
  package func isKnown(_ origin: Origin) -> Bool {
    switch origin {
    case .address(let address): origins.contains { $0.origin == address }
    case .local(let own): own
    case .unknown: false
    }
  }

  /// The bucket of known origins, or of all others.
  package subscript(known isKnown: Bool) -> Bucket {
    get { isKnown ? known : other }
    set { if isKnown { known = newValue } else { other = newValue } }
  }

  /// Records the address of a successful login as a known origin, before the others.
  mutating func remember(_ use: Use) {
    guard case .address(let address) = use.origin else { return }
    var latest = [KnownOrigin(origin: address, lastSeen: use.time)]
    for known in origins where known.origin != address && latest.count < LoginState.maximumOrigins {
      latest.append(known)
    }
    origins = latest
  }
}
