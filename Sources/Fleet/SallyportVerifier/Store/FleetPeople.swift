import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 the name after which, $2 and $3 what the decoys' names are between, $4 how many.
  fileprivate static let names = """
    SELECT name FROM enrollment
    WHERE name > $1 AND (name < $2 OR name >= $3) AND octet_length(name) < 256
    ORDER BY name LIMIT $4::int
    """
}

// All who have a row, a page at a time.
extension FleetStore {
  /// Two statements: the names, and all that is to be read of them, of which the verifier has to
  /// know before what it had seen. Somebody whose rows cannot be believed is one of them.
  func people(_ request: PeopleRequest, under policies: FleetPolicy) throws(StoreTrouble)
    -> PeopleAnswer
  {
    let (rows, _) = try ask { () throws(DatabaseFault) in
      try database.ask(
        Statement.names,
        [
          .bytes(request.after), .bytes(bytes(of: "/")), .bytes(bytes(of: "0")),
          .number(UInt64(request.count + 1)),
        ])
    }
    let names = (0..<rows.count).compactMap { rows.bytes($0, 0) }
    let page = Array(names.prefix(request.count))
    if page.isEmpty { return .told([], isLast: true) }
    try load(all: page)
    let now = try now()
    let entries = page.map { name in
      do throws(StoreTrouble) {
        return try row(of: name).entry(name, at: now) { policies.ofCommand(name) }
      } catch {
        return PeopleAnswer.Entry(name, .unreadable)
      }
    }
    return .told(entries, isLast: names.count == page.count)
  }
}

extension FleetPolicy {
  /// Under which a host's root sees how many wrong codes are left, as far as the verifiers say it.
  fileprivate func ofCommand(_ user: [UInt8]) -> Policy {
    reading(service: bytes(of: "sallyport"), user: user, isRemote: false, address: nil).policy
  }
}

extension Row? {
  /// Nobody removes rows: who has none by now cannot be told.
  fileprivate func entry(_ name: [UInt8], at now: UnixTime, under policy: () -> Policy)
    -> PeopleAnswer.Entry
  {
    guard let self else { return PeopleAnswer.Entry(name, .unreadable) }
    let document = self.document
    let place: PeopleAnswer.Place =
      switch document.place {
      case .enrolled(let enrollment):
        .enrolled(enrollment.told(self.state, at: now, under: policy))
      case .notEnrolled, .removed: .notEnrolled
      case .taken(_, _, let host): .taken(by: host)
      }
    return PeopleAnswer.Entry(name, place, level: document.note.level, block: document.block)
  }
}

extension Enrollment {
  fileprivate func told(_ state: LoginState?, at now: UnixTime, under policy: () -> Policy)
    -> PeopleAnswer.Enrolled
  {
    var state = state ?? LoginState(initialFor: self)
    state.reconcile(with: self)
    return PeopleAnswer.Enrolled(
      authenticators.map(\.name), backupCodesLeft: backupCodes?.left(state.backupCodes) ?? 0,
      since: created, lastUse: state.lastUse.map { UnixTime(max($0.time.seconds, 0)) },
      openPasses: openPasses(state, at: now).count, lock: lock(state, at: now, under: policy))
  }

  /// Of codes of the length that costs most.
  private func lock(_ state: LoginState, at now: UnixTime, under policy: () -> Policy)
    -> PeopleAnswer.Lock
  {
    if state.known == .full, state.other == .full { return .none }
    let throttle = Throttle(for: self, state, under: policy())
    let digits =
      authenticators.map(\.parameters.digits)
      .max { throttle.cost(of: $0) < throttle.cost(of: $1) } ?? .six
    let locked = [state.known, state.other].filter {
      throttle.isThrottled($0, digits: digits, at: now)
    }
    var longest: UInt64 = 0
    for bucket in locked {
      guard let wait = throttle.wait(for: bucket, digits: digits, at: now),
        let seconds = Int64(exactly: wait)
      else { return .forGood }
      longest = max(longest, UInt64(seconds))
    }
    let (end, isTooLate) = now.seconds.addingReportingOverflow(Int64(longest))
    return locked.isEmpty ? .none : isTooLate ? .forGood : .until(UnixTime(end))
  }
}
