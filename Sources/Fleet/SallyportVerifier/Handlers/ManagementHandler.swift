package import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// What root's commands on a host ask about people of the fleet.
package enum ManagementRequest: Sendable {
  case move(MoveRequest)
  case person(PersonRequest)
  case roster(RosterRequest)
  case people(PeopleRequest)
  case events(EventsRequest)
  case rights(RightsRequest)
}

/// Answers root's commands on hosts that may enroll people of the fleet. Another host learns
/// nothing.
package struct ManagementHandler: FrameHandler {
  let database: Database
  let policies: FleetPolicy

  package init(_ database: Database, _ policies: FleetPolicy) {
    (self.database, self.policies) = (database, policies)
  }

  package func read(_ body: Secret) -> ManagementRequest? {
    MoveRequest.decode(body).map { .move($0) } ?? PersonRequest.decode(body).map { .person($0) }
      ?? RosterRequest.decode(body).map { .roster($0) }
      ?? PeopleRequest.decode(body).map { .people($0) }
      ?? EventsRequest.decode(body).map { .events($0) }
      ?? RightsRequest.decode(body).map { .rights($0) }
  }

  package func line(of request: ManagementRequest) -> FleetServer.Line? {
    request.name.map { .user($0.bytes) }
  }

  /// An empty answer to what is no request.
  package func answer(_ request: ManagementRequest?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let request else { return VerifierAnswer(to: .management, []) }
    let host = asker.host
    // The kinds of a MoveAnswer are the same in all answers.
    guard let now = try? Clock.now(),
      request.isAllowed(by: asker, at: now) || request.isEnd && !asker.rests
    else {
      return VerifierAnswer(to: .management, MoveAnswer.notAllowed)
    }
    if database.isAway { return .databaseAway }
    let event = Event(
      of: request.service, on: host, name: request.name?.bytes ?? [], act: request.act)
    let store = FleetStore(
      database, event, uid: nil, until: request.deadline(since: arrived),
      spending: request.counted.map { asker.spending($0, for: request.name?.bytes) })
    if let line = request.looks(on: host) { database.note(.notice, line) }
    do throws(StoreTrouble) {
      switch request {
      case .move(let move):
        let isKept = !request.isAllowed(by: asker, at: now)
        return try answer(move, on: host, by: store, isKept: isKept)
      case .person(let request):
        if request.verb.isNew, try !store.mayWriteNew(of: request.name) { return .notServed }
        if case .help(let order) = request.verb {
          let answer = try help(order, request.name, on: host, by: store)
          return VerifierAnswer(to: .management, answer)
        }
        return VerifierAnswer(to: .management, try perform(request, on: host, by: store))
      case .roster(let request):
        return VerifierAnswer(
          to: .management, RosterAnswer.told(try store.roster(of: request.names)))
      case .people(let request):
        return VerifierAnswer(to: .management, try store.people(request, under: policies))
      case .events(let request):
        return VerifierAnswer(to: .management, try store.events(request))
      case .rights(let request):
        let rights = asker.rights.held(at: now)
        let used = try store.ask { () throws(DatabaseFault) in
          try database.used(by: asker.pin.bytes, of: rights, for: request.name?.bytes)
        }
        let isClosed = database.counts.isClosed(host)
        return VerifierAnswer(
          to: .management, RightsAnswer.told(rights, used: used, isClosed: isClosed))
      }
    } catch {
      if store.wasAway { return .databaseAway }
      if store.isUsedUp { return VerifierAnswer(to: .management, MoveAnswer.notAllowed) }
      if let name = request.name {
        database.note(
          .error, request.action, of: name, on: host, remark: "unknown whether it was done: ")
      }
      return VerifierAnswer(to: .management, MoveAnswer.trouble)
    }
  }

  /// `isKept`: the host does not have the right.
  private func answer(
    _ request: MoveRequest, on host: [UInt8], by store: FleetStore, isKept: Bool
  ) throws(StoreTrouble) -> VerifierAnswer {
    if request.isTaking {
      // What migrate --finish has written is read with any row.
      _ = try store.standing(of: request.name)
      if !database.writesFormer { return .notServed }
    }
    if case .put(let moving, _) = request, moving.isNew,
      try !store.mayWriteNew(of: request.name)
    {
      return .notServed
    }
    guard case .fetch(let name, let isForced) = request else {
      var answer = try moved(request, on: host, to: store)
      if isKept, !answer.isKnown(to: request) { answer = .notAllowed }
      return VerifierAnswer(to: .management, answer)
    }
    let told = try fetched(name, isForced: isForced, on: host, from: store)
    // A secret leaves the fleet: it is counted, and a warning for each.
    if case .copy = told {
      try store.spend()
      database.note(.warning, request.action, of: name, on: host)
      database.note(act: .fleetFetch, of: name, on: host)
    }
    return VerifierAnswer(to: .management, told)
  }

  /// What a host gets that takes somebody.
  private func fetched(
    _ name: UserName, isForced: Bool, on host: [UInt8], from store: FleetStore
  ) throws(StoreTrouble) -> FetchAnswer {
    let found = try store.fetch(name)
    guard case .copy = found else { return found }
    // Its own files would not say so, nor have what can be restored.
    if try store.stays(store.account(named: name)) { return .other(.notAllowed) }
    // As was learned just now.
    if database.holdsBackupCodes { return .held }
    if !isForced {
      let others = try store.hosts(of: name, but: host)
      if !others.isEmpty { return .used(on: others) }
    }
    return found
  }

  private func moved(_ request: MoveRequest, on host: [UInt8], to store: FleetStore)
    throws(StoreTrouble) -> MoveAnswer
  {
    let other: FleetStanding?
    switch request {
    case .look(let name), .fetch(let name, _): return .standing(try store.standing(of: name))
    case .put(let moving, let version):
      other = try store.put(moving.placed(on: host), over: version, from: host)
    case .merge(let moving): other = try store.merge(moving)
    case .bury(let name, let burial): other = try store.bury(name, burial, by: host)
    }
    if let other { return .standing(other) }
    database.note(.notice, request.action, of: request.name, on: host)
    if let verb = request.act { database.note(act: verb, of: request.name, on: host) }
    return .done
  }
}

extension ManagementRequest {
  /// nil: about many.
  fileprivate var name: UserName? {
    switch self {
    case .move(let request): request.name
    case .person(let request): request.name
    case .roster, .people, .events, .rights: nil
    }
  }

  /// Of which a host must have one; the first is the one for changes. Empty: for every host.
  fileprivate var rights: [HostRight] {
    switch self {
    case .move(.fetch), .move(.bury): [.takes]
    case .move(.look): [.changes, .takes]
    case .move(.put), .move(.merge): [.changes]
    // Somebody who cannot be taken: why not.
    case .person(let request): request.verb == .tell ? [.changes, .takes] : [.changes]
    case .roster, .people, .events: [.changes]
    case .rights: []
    }
  }

  /// Whether it ends what the host has begun. Nothing leaves the fleet by it, and it names what
  /// only who was given the secrets knows: the host need not have the right any more.
  fileprivate var isEnd: Bool { if case .move(.bury) = self { true } else { false } }

  /// As what each of its saves is counted. Who is buried was counted when he was fetched.
  fileprivate var counted: HostRight? {
    if case .move(.bury) = self { nil } else { rights.first }
  }

  fileprivate func isAllowed(by asker: HostIdentity, at now: UnixTime) -> Bool {
    rights.isEmpty || rights.contains { asker.rights.allows($0, at: now, for: name?.bytes) }
  }

  /// When what is asked is not begun any more, in nanoseconds of CLOCK_MONOTONIC: a helper would
  /// not be told, and it would count. Root's command asks again.
  fileprivate func deadline(since arrived: UInt64) -> UInt64 {
    guard case .person(let request) = self, case .help = request.verb else { return .max }
    return arrived &+ 2_000_000_000
  }

  /// As the log tells of it.
  fileprivate var action: StaticString {
    switch self {
    case .move(let request): request.action
    case .person(let request): request.verb.action
    case .roster, .people, .rights: "looked for enrollments:"
    case .events: "looked for logins:"
    }
  }

  /// What a save of it is.
  fileprivate var act: Act.Verb? {
    switch self {
    case .move(let request): request.act
    case .person(let request): request.verb.saved
    case .roster, .people, .events, .rights: nil
    }
  }

  /// As the log tells of it where nothing is changed; nil: that is told when it is done.
  fileprivate func looks(on host: [UInt8]) -> LogLine? {
    var line = LogLine(action)
    switch self {
    case .move(.look(let name)): line.add(user: name.bytes)
    case .person(let request) where request.verb.looks: line.add(user: request.name.bytes)
    case .roster(let request): line.add(" people=", request.names.count)
    case .people(let request): line.add(" people=", request.count)
    case .events: break
    case .move, .person, .rights: return nil
    }
    line.add(" host=")
    line.add(field: host)
    return line
  }

  /// As the event tells of it.
  fileprivate var service: StaticString {
    switch self {
    case .move: "sallyport-fleet"
    case .person, .roster, .people, .events, .rights: "sallyport"
    }
  }
}

extension MoveRequest {
  /// As the log tells of it.
  fileprivate var action: StaticString {
    switch self {
    case .look: "looked for an enrollment:"
    case .put: "moved from a host's files to the fleet:"
    case .merge: "merged the used codes of a host's files:"
    case .fetch: "gave a host the secrets of an enrollment:"
    case .bury: "moved from the fleet to a host's files:"
    }
  }

  /// nil: nothing is changed.
  fileprivate var act: Act.Verb? {
    switch self {
    case .look: nil
    case .put, .merge: .fleetPush
    case .fetch: .fleetFetch
    case .bury: .fleetTake
    }
  }

  /// What writes documents that an older verifier does not read.
  fileprivate var isTaking: Bool {
    switch self {
    case .fetch, .bury: true
    case .look, .put, .merge: false
    }
  }
}

extension MoveAnswer {
  /// Whether it tells no more of him than who ends an enrollment has said.
  fileprivate func isKnown(to request: MoveRequest) -> Bool {
    guard case .bury(_, let burial) = request, case .standing(let found) = self else { return true }
    return found.person == .enrolled(burial.id) || found.person == .removed(burial.id)
  }
}

extension MoveRequest.Moving {
  /// Whether an older verifier does not read it.
  fileprivate var isNew: Bool {
    !enrollment.passes.isEmpty || !enrollment.suspended.isEmpty
      || enrollment.authenticators.contains { $0.clockOffset != nil }
  }

  fileprivate func placed(on host: [UInt8]) -> MoveRequest.Moving {
    MoveRequest.Moving(enrollment, state.placed(on: host))
  }
}
