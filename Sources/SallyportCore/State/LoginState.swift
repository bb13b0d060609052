import OneTimePassword

/// What logins change: read, decided on and written under the user's lock.
package struct LoginState: Equatable, Sendable {
  /// Origins that count as known after a login from there.
  package static let maximumOrigins = 10

  /// The `id` of the enrollment this state belongs to.
  package let enrollmentID: UInt64
  package var authenticators: [AuthenticatorState]
  package var backupCodes: BackupCodeState?
  package var known: Bucket
  package var other: Bucket
  /// nil: none, or none that counts any more.
  package var slip: Slip?
  package var refunds: Refunds
  /// The latest first.
  package var origins: [KnownOrigin]
  /// The newest first.
  package var remembered: [RememberedOrigin]

  package init(
    enrollmentID: UInt64, authenticators: [AuthenticatorState] = [],
    backupCodes: BackupCodeState? = nil, known: Bucket = .full, other: Bucket = .full,
    slip: Slip? = nil, refunds: Refunds = Refunds(), origins: [KnownOrigin] = [],
    remembered: [RememberedOrigin] = []
  ) {
    self.enrollmentID = enrollmentID
    self.authenticators = authenticators
    self.backupCodes = backupCodes
    self.known = known
    self.other = other
    self.slip = slip
    self.refunds = refunds
    self.origins = origins
    self.remembered = remembered
  }

  /// The state of a user who has just enrolled.
  package init(initialFor enrollment: Enrollment) {
    self.init(enrollmentID: enrollment.id)
    reconcile(with: enrollment)
  }

  /// The latest use of any authenticator or backup code; nil: none has been used.
  package var lastUse: Use? {
    var latest = backupCodes?.lastUse
    for use in authenticators.compactMap({ $0.lastUse }) where use.time >= latest?.time ?? use.time
    {
      latest = use
    }
    return latest
  }

  /// Brings the list of ids in line with the enrollment: one that is missing here has its initial
  /// values, one that the enrollment does not know is dropped. So the two files need no common
  /// rename; the enrollment is written first.
  package mutating func reconcile(with enrollment: Enrollment) {
    let stored = authenticators
    authenticators = []
    for authenticator in enrollment.authenticators {
      var state = AuthenticatorState(
        id: authenticator.id, lastAccepted: authenticator.initialLastAccepted)
      for known in stored where known.id == authenticator.id { state = known }
      authenticators.append(state)
    }
    if let set = enrollment.backupCodes {
      if backupCodes?.setID != set.id { backupCodes = BackupCodeState(setID: set.id, used: 0) }
    } else {
      backupCodes = nil
    }
  }

  /// For a state after which another may have been lost: counts every code as used that a login up
  /// to now could have been accepted for, under any policy; of a counter the next one, which is
  /// nearly always the one; and no origin is remembered, nor a slip, for they may have been
  /// forgotten then. What else was lost is not known: a backup code that was used up then is good
  /// once more.
  package mutating func distrustLoss(of enrollment: Enrollment, at now: UnixTime) {
    reconcile(with: enrollment)
    forgetRemembered()
    slip = nil
    for (index, authenticator) in enrollment.authenticators.enumerated()
    where index < authenticators.count {
      let last = authenticators[index].lastAccepted
      switch authenticator.parameters.type {
      case .totp(let period):
        let step = timeStep(at: now.seconds, period: period)
        let latest = step + UInt64(Policy.mostAdjacentIntervals)
        authenticators[index].lastAccepted = max(last ?? 0, latest)
      case .hotp:
        authenticators[index].lastAccepted = last.map { $0 < UInt64.max ? $0 + 1 : $0 } ?? 0
      }
    }
  }

  /// Stored times in the future are never believed: a bucket with one is dated back to now and so
  /// gets no credit, as is a refund; a remembered origin or a slip with one is forgotten. Known
  /// origins stay: their times decide nothing, and a clock that is set back a second must not put
  /// the owner among the strangers.
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

/// The values of one authenticator that logins change.
package struct AuthenticatorState: Equatable, Sendable {
  package let id: UInt64
  /// The last accepted time step (TOTP, RFC 6238 §5.2) or counter (HOTP); only greater ones are
  /// accepted. nil: none yet.
  package var lastAccepted: UInt64?
  /// The offset of the authenticator's clock at its last success or resync, in time steps; its
  /// clock is behind where this is negative. 0 for HOTP.
  package var drift: Int32
  package var lastUse: Use?

  package init(id: UInt64, lastAccepted: UInt64?, drift: Int32 = 0, lastUse: Use? = nil) {
    self.id = id
    self.lastAccepted = lastAccepted
    self.drift = drift
    self.lastUse = lastUse
  }

  /// Notes an accepted code: none at or below `position` is accepted again.
  mutating func accept(_ position: UInt64, drift: Int32, _ use: Use) {
    lastAccepted = position
    self.drift = drift
    lastUse = use
  }
}

/// When, where and through which PAM service something was last accepted; for people only.
package final class Use: Equatable, Sendable {
  package let time: UnixTime
  package let origin: Origin
  /// nil where the service's name is no `Label`.
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
  /// Whether wrong codes from there spend the bucket of known places.
  package func isKnown(_ origin: Origin) -> Bool {
    switch origin {
    case .address(let address): origins.contains { $0.origin == address }
    case .local(let own): own
    case .unknown: false
    }
  }

  /// The bucket of known places, or of all others.
  package subscript(known isKnown: Bool) -> Bucket {
    get { isKnown ? known : other }
    set { if isKnown { known = newValue } else { other = newValue } }
  }

  /// Notes a successful login's address as a known origin, in front of the others.
  mutating func remember(_ use: Use) {
    guard case .address(let address) = use.origin else { return }
    var latest = [KnownOrigin(origin: address, lastSeen: use.time)]
    for known in origins where known.origin != address && latest.count < LoginState.maximumOrigins {
      latest.append(known)
    }
    origins = latest
  }
}
