import FleetProtocol
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

// Root's verbs about people of the fleet, on hosts that may enroll them.
extension ManagementHandler {
  func perform(_ request: PersonRequest, on host: [UInt8], by store: FleetStore)
    throws(StoreTrouble) -> PersonAnswer
  {
    let account = store.account(named: request.name)
    let isDone: Bool
    switch request.verb {
    case .tell: return .told(try store.told(of: request.name))
    case .unlock(let id): isDone = try store.unlock(account, id: id)
    case .end(let id): isDone = try store.end(account, id: id)
    case .forget(let id): isDone = try store.forget(account, id: id) != nil
    case .level(let level):
      try store.setLevel(level, of: account)
      isDone = true
    case .resynchronize(let codes, let label, let policy, let id):
      guard
        let result = try store.resynchronize(
          account, id: id, by: codes, named: label, under: policy, at: store.now)
      else { return .changed }
      if case .done = result { note(request.verb, of: account.name, on: host) }
      return .resynchronized(result)
    case .block(let until):
      isDone = try store.block(account, until: until)
    case .unblock: isDone = try store.unblock(account)
    case .former(let suspension, let id):
      guard let former = try store.former(suspension, of: request.name, id: id) else {
        return .changed
      }
      let moving = MoveRequest.Moving(former, LoginState(initialFor: former))
      return .told(PersonFacts(.enrolled(moving), UserNote(), logins: 0))
    case .restore(let suspension, let id):
      isDone = try store.restore(suspension, of: account, id: id)
    // Its answer is another.
    case .help: isDone = false
    }
    guard isDone else { return .changed }
    note(request.verb, of: account.name, on: host)
    return .other(.done)
  }

  /// For a helper of a host, who is not root there: whose session has asked for his code.
  func help(_ order: HelpOrder, _ name: UserName, on host: [UInt8], by store: FleetStore)
    throws(StoreTrouble) -> HelpAnswer
  {
    let answer = try store.help(order, store.account(named: name)) { stated in
      policies.tightened(
        stated, service: Array("sallyport".utf8), user: name.bytes, isRemote: false, address: nil
      ) { database.note(.error, $0) }
    }
    switch answer {
    case .done, .lent:
      guard let (verb, facts) = order.verb.act else { break }
      let helper = Act.Fact("helper", order.helper.bytes)
      database.note(act: verb, facts + [helper], of: name, on: host)
    case .told, .refused, .notServed, .trouble: break
    }
    return answer
  }

  private func note(_ verb: PersonRequest.Verb, of user: UserName, on host: [UInt8]) {
    database.note(.notice, verb.action, of: user, on: host)
    if let act = verb.act { database.note(act: act, of: user, on: host) }
  }
}

extension PersonRequest.Verb {
  /// nil: nothing is changed.
  fileprivate var act: Act.Verb? {
    switch self {
    case .tell, .former: nil
    case .unlock: .unlock
    case .end: .unenroll
    case .forget: .forget
    case .level(.required): .require
    case .level(.exempt): .exempt
    case .level(nil): .level
    case .resynchronize: .resync
    case .block: .block
    case .unblock: .unblock
    case .restore: .restore
    case .help(let order): order.verb.act?.verb
    }
  }

  /// As an event has it: but for two codes, which are saved also where they are refused.
  var saved: Act.Verb? { if case .resynchronize = self { nil } else { act } }

  /// Whether nothing is changed.
  var looks: Bool { if case .resynchronize = self { false } else { act == nil } }

  /// Whether an older verifier does not read what it writes.
  var isNew: Bool {
    switch self {
    case .block, .level(.exempt(until: .some)), .help: true
    case .tell, .unlock, .end, .forget, .level, .resynchronize, .unblock, .former, .restore: false
    }
  }

  /// As the log tells of it.
  var action: StaticString {
    switch self {
    case .tell: "looked for an enrollment:"
    case .unlock: "wrong codes forgotten:"
    case .end: "not enrolled any more:"
    case .forget: "remembered addresses forgotten:"
    case .level(.required): "must enroll:"
    case .level(.exempt): "exempt from enrollment:"
    case .level(nil): "level reset to the policy's:"
    case .resynchronize: "an authenticator was resynchronized:"
    case .block: "blocked:"
    case .unblock: "not blocked any more:"
    case .former: "looked for what can be restored:"
    case .restore: "what a pass replaced was restored:"
    case .help(let order): order.verb.action
    }
  }
}

extension HelpOrder.Verb {
  fileprivate var action: StaticString {
    switch self {
    case .show: "shown to a helper:"
    case .lend: "tries were lent by a helper:"
    case .give: "a pass was given by a helper:"
    case .block: "blocked by a helper:"
    case .unblock: "a helper's block was lifted:"
    }
  }

  /// nil: nothing is changed.
  fileprivate var act: (verb: Act.Verb, facts: [Act.Fact])? {
    switch self {
    case .show: nil
    case .lend: (.unlock, [Act.Fact("lent", "yes".utf8)])
    case .give(let pass, _): Act.told(.give(pass))
    case .block(let until):
      (.block, until?.internetText.map { [Act.Fact("until", $0.utf8)] } ?? [])
    case .unblock: (.unblock, [])
    }
  }
}
