package import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// What root's commands on a host ask about one person.
package enum ManagementRequest: Sendable {
  case move(MoveRequest)
  case person(PersonRequest)
}

/// Takes enrollments from the files of hosts that may enroll people of the fleet, and gives them
/// back.
package struct ManagementHandler: FrameHandler {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  package func read(_ body: Secret) -> ManagementRequest? {
    MoveRequest.decode(body).map { .move($0) } ?? PersonRequest.decode(body).map { .person($0) }
  }

  package func name(in request: ManagementRequest) -> [UInt8]? {
    switch request {
    case .move(let request): request.name.bytes
    case .person(let request): request.name.bytes
    }
  }

  /// An empty answer to what is no request.
  package func answer(_ request: ManagementRequest?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    switch (request, asker.host) {
    case (.move(let request), let host?): answer(request, on: host, enrolls: asker.enrolls)
    case (.person(let request), let host?):
      PersonHandler(database: database).answer(request, on: host, enrolls: asker.enrolls)
    case (_, nil), (nil, _): VerifierAnswer(to: .management, [])
    }
  }

  private func answer(_ request: MoveRequest, on host: [UInt8], enrolls: Bool) -> VerifierAnswer {
    guard enrolls else { return answer(.notAllowed) }
    if database.isAway { return .databaseAway }
    let event = Event(of: "sallyport-fleet", on: host, name: request.name.bytes)
    let store = FleetStore(database, event, uid: nil)
    do throws(StoreTrouble) {
      if request.isTaking {
        // What migrate --finish has written is read with any row.
        _ = try store.standing(of: request.name)
        if !database.writesNew { return .notServed }
      }
      if case .fetch(let name, let isForced) = request {
        let told = try fetched(name, isForced: isForced, on: host, from: store)
        // A secret leaves the fleet: a warning for each.
        if case .copy = told {
          database.note(.warning, request.action, of: name, on: host)
        }
        return VerifierAnswer(to: .management, told.encoded() ?? [])
      }
      return answer(try moved(request, on: host, to: store))
    } catch {
      if store.wasAway { return .databaseAway }
      database.note(
        .error, request.action, of: request.name, on: host, remark: "unknown whether it was done: ")
      return answer(.trouble)
    }
  }

  /// What a host gets that takes somebody.
  private func fetched(
    _ name: UserName, isForced: Bool, on host: [UInt8], from store: FleetStore
  ) throws(StoreTrouble) -> FetchAnswer {
    let found = try store.fetch(name)
    guard case .copy = found else { return found }
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
    return .done
  }

  private func answer(_ answer: MoveAnswer) -> VerifierAnswer {
    VerifierAnswer(to: .management, answer.encoded() ?? [])
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

  /// What writes documents that an older verifier does not read.
  fileprivate var isTaking: Bool {
    switch self {
    case .fetch, .bury: true
    case .look, .put, .merge: false
    }
  }
}

extension MoveRequest.Moving {
  fileprivate func placed(on host: [UInt8]) -> MoveRequest.Moving {
    MoveRequest.Moving(enrollment, state.placed(on: host))
  }
}
