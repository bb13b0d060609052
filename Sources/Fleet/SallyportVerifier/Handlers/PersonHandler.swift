import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// Answers root's verbs about people of the fleet, on hosts that may enroll them.
struct PersonHandler: Sendable {
  let database: Database

  func answer(_ request: PersonRequest, on host: [UInt8], enrolls: Bool) -> VerifierAnswer {
    guard enrolls else { return answer(.other(.notAllowed)) }
    if database.isAway { return .databaseAway }
    let event = Event(of: "sallyport", on: host, name: request.name.bytes)
    let store = FleetStore(database, event, uid: nil)
    do throws(StoreTrouble) {
      return answer(try judged(request, on: host, by: store))
    } catch {
      if store.wasAway { return .databaseAway }
      note(.error, "unknown whether it was done: ", request, host)
      return answer(.other(.trouble))
    }
  }

  private func judged(_ request: PersonRequest, on host: [UInt8], by store: FleetStore)
    throws(StoreTrouble) -> PersonAnswer
  {
    let name = request.name
    let isDone: Bool
    switch request.verb {
    case .tell: return .told(try store.told(of: name))
    case .unlock(let id): isDone = try store.unlock(name, id: id)
    case .end(let id): isDone = try store.end(name, id: id)
    case .level(let level):
      try store.setLevel(level, of: name)
      isDone = true
    case .resynchronize(let codes, let label, let policy, let id):
      guard
        let result = try store.resynchronize(
          name, id: id, by: codes, named: label, under: policy)
      else { return .changed }
      if case .done = result { note(.notice, "", request, host) }
      return .resynchronized(result)
    }
    guard isDone else { return .changed }
    note(.notice, "", request, host)
    return .other(.done)
  }

  private func answer(_ answer: PersonAnswer) -> VerifierAnswer {
    VerifierAnswer(to: .management, answer.encoded() ?? [])
  }

  private func note(
    _ level: LogLevel, _ remark: StaticString, _ request: PersonRequest, _ host: [UInt8]
  ) {
    var line = LogLine(remark)
    switch request.verb {
    case .tell: line.add("looked for an enrollment:")
    case .unlock: line.add("wrong codes forgotten:")
    case .end: line.add("not enrolled any more:")
    case .level(.required): line.add("must enroll:")
    case .level(.exempt): line.add("exempt from enrollment:")
    case .level(nil): line.add("level reset to the policy's:")
    case .resynchronize: line.add("an authenticator was resynchronized:")
    }
    line.add(user: request.name.bytes)
    line.add(" host=")
    line.add(field: host)
    database.note(level, line)
  }
}
