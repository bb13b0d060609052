import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// Enrollments that come from the files of a host, with their used codes. A repeated question
// changes nothing more: the host's files are marked, and no login uses them.
extension FleetStore {
  func standing(of name: UserName) throws(StoreTrouble) -> FleetStanding {
    try row(of: name.bytes, reload: true).standing
  }

  /// nil: it is saved. Otherwise what is there, unchanged: another version than `version`, or
  /// another enrollment. If it is there already, from an earlier question or from a host with a
  /// copy of the files, only the used codes are taken over.
  func put(_ moving: MoveRequest.Moving, over version: UInt64, from host: [UInt8])
    throws(StoreTrouble) -> FleetStanding?
  {
    let key = moving.enrollment.user.bytes
    let found = try database.alone(for: try hash(of: key), until: deadline) {
      () throws(StoreTrouble) -> FleetStanding? in
      for _ in 0..<Self.attempts {
        let row = try row(of: key, reload: true)
        let standing = row.standing
        if case .enrolled = standing.person { return standing }
        guard standing.version == version else { return standing }
        // By an old copy: the enrollment has ended, or another host has its successor.
        var document = row?.document ?? FleetDocument(.notEnrolled)
        if document.hasEnded(moving.enrollment.id, for: host) {
          return FleetStanding(.removed(moving.enrollment.id), version: standing.version)
        }
        document.begin(moving.enrollment)
        if try saveBoth(document, moving.state, of: key, over: row?.mark) { return nil }
      }
      throw .busy(path: "fleet")
    }
    guard found?.person == .enrolled(moving.enrollment.id) else { return found }
    return try merge(moving, isCopy: true)
  }

  /// Codes of the same secrets and backup codes that were used elsewhere count as used here. nil:
  /// it is saved. Otherwise nobody is enrolled; or a copy with the same id has something that the
  /// fleet lacks: it was changed since, and would be lost.
  func merge(_ moving: MoveRequest.Moving, isCopy: Bool = false) throws(StoreTrouble)
    -> FleetStanding?
  {
    let name = moving.enrollment.user
    for _ in 0..<Self.attempts {
      guard let record = try load(Account(name: name, uid: nil)) else {
        return try standing(of: name)
      }
      let done = try transact(record, asKnown: true) {
        (enrollment, state) throws(StoreTrouble) -> (Bool, LoginState) in
        if isCopy, !enrollment.hasAll(of: moving.enrollment) { return (false, state) }
        var state = state
        state.reconcile(with: enrollment)
        state.useUp(moving, of: enrollment)
        return (true, state)
      }
      if case .committed(let isDone) = done { return isDone ? nil : try standing(of: name) }
      _ = try row(of: name.bytes, reload: true)
    }
    throw .busy(path: "fleet")
  }
}

extension Row? {
  var standing: FleetStanding {
    guard let self else { return FleetStanding(.nobody, version: 0) }
    let person: FleetStanding.Person =
      switch self.document.place {
      case .enrolled(let enrollment): .enrolled(enrollment.id)
      case .notEnrolled: .nobody
      case .removed(let id), .taken(let id, _, _): .removed(id)
      }
    // Of who is not enrolled, what says that nothing has changed: his rows are also saved as they
    // are, when the fleet changes its key.
    if case .enrolled = person { return FleetStanding(person, version: self.mark.version) }
    return FleetStanding(person, version: self.document.serial)
  }
}

extension LoginState {
  /// Marks as used what `moving` has used of the secrets that `enrollment`, whose state this is,
  /// has too.
  fileprivate mutating func useUp(_ moving: MoveRequest.Moving, of enrollment: Enrollment) {
    var used = moving.state
    used.reconcile(with: moving.enrollment)
    for (index, own) in enrollment.authenticators.enumerated() {
      for (other, state) in zip(moving.enrollment.authenticators, used.authenticators)
      where own.hasSecret(of: other) {
        let last = [authenticators[index].lastAccepted, state.lastAccepted].compactMap { $0 }
        authenticators[index].lastAccepted = last.max()
      }
    }
    guard let own = enrollment.backupCodes, let other = moving.enrollment.backupCodes,
      own.hasCodes(of: other)
    else { return }
    backupCodes?.used |= used.backupCodes?.used ?? 0
  }

  /// The state of a host's own files in the form of a fleet: its places become places of this host.
  /// Only values that decide nothing are left out.
  func placed(on host: [UInt8]) -> LoginState {
    let places = OriginPseudonyms(on: host)
    var state = self
    state.origins = origins.compactMap { one in
      places.of(one.origin).map { KnownOrigin(origin: $0, lastSeen: one.lastSeen) }
    }
    state.remembered = remembered.compactMap { one in
      places.of(one.origin).map {
        RememberedOrigin(origin: $0, service: one.service, granted: one.granted)
      }
    }
    return state
  }
}

extension Enrollment {
  /// Whether each authenticator and each backup code of the other one is in this one, too.
  fileprivate func hasAll(of other: Enrollment) -> Bool {
    let hasCodes =
      switch (backupCodes, other.backupCodes) {
      case (_, nil): true
      case (let own?, let other?): own.hasCodes(of: other)
      case (nil, _): false
      }
    return hasCodes
      && other.authenticators.allSatisfy { one in
        authenticators.contains { $0.hasSecret(of: one) }
      }
  }
}

extension Authenticator {
  /// Whether both make the same codes at the same positions.
  fileprivate func hasSecret(of other: Authenticator) -> Bool {
    parameters == other.parameters && constantTimeEquals(secret, other.secret)
  }
}

extension BackupCodeSet {
  /// Whether both have the same codes, so that the bits mean the same.
  fileprivate func hasCodes(of other: BackupCodeSet) -> Bool {
    salt == other.salt && digests == other.digests && scratchDigests == other.scratchDigests
  }
}
