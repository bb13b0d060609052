import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

// The same for somebody of a fleet: its verifiers do it, and count what was done for him. The
// session asks them by the service of this machine.

extension Session {
  /// What the fleet has of him. Nothing is changed.
  func told(of helping: Helping) throws(Ending) -> HelpedPerson {
    let request = request(.show, helping)
    let answer = try found { () throws(StoreTrouble) in try environment.askFleet(request) }
    switch answer {
    case .told(let person): return person
    case .notServed: throw helping.refused(.helpInFleet)
    case .done, .trouble, .refused, .lent: throw .refused(.failed)
    }
  }

  /// `id`: of his enrollment; 0 if he has none.
  func carry(out helping: Helping, _ person: HelpedPerson, _ id: UInt64) throws(Ending)
    -> FromSession
  {
    let name = helping.person.name
    switch helping.act {
    case .status:
      guard let (enrollment, state) = person.enrolled else { throw .refused(.changed) }
      let status = try shown(enrollment.with(uid: helping.uid), state)
      SessionLog.write(.notice, .shown(name, to: client.account.name))
      return status
    case .unlock:
      let verb = HelpOrder.Verb.lend(under: helping.context.policy, id: id)
      let facts = [Act.Fact("lent", "yes".utf8)]
      let act = SessionAct(.unlock, facts, of: name, by: client, in: store)
      let answer = try ask(verb, helping, act)
      guard case .lent(let tries) = answer else { throw .refused(.unknown) }
      return .lent(to: name, tries: tries)
    case .pass, .passEnroll:
      let made = try freshPass(helping, id)
      let act = SessionAct(.give(made.pass), of: name, by: client, in: store)
      _ = try ask(.give(made.pass, id: id), helping, act)
      return passed(helping, made)
    case .block(let until):
      // It would block nobody.
      if let until, until <= (try found(Clock.now)) { throw .refused(.changed) }
      let facts = until?.internetText.map { [Act.Fact("until", $0.utf8)] } ?? []
      _ = try ask(
        .block(until: until), helping, SessionAct(.block, facts, of: name, by: client, in: store))
      return .done(of: name, backupCodes: [], names: [])
    case .unblock: return try unblockEverywhere(helping)
    }
  }

  /// What is left in the files of this machine, from before the fleet, blocks him here alone: both
  /// are one act.
  private func unblockEverywhere(_ helping: Helping) throws(Ending) -> FromSession {
    let (name, request) = (helping.person.name, request(.unblock, helping))
    let act = SessionAct(.unblock, [], of: name, by: client, in: store)
    let (answer, here) = try recorded(act) {
      () throws(StoreTrouble) -> (HelpAnswer, Store.Lifting) in
      let answer = try asked(request)
      guard answer.isDone || answer.isNotBlocked else { return (answer, .notBlocked) }
      let here = try store.unblock(
        helping.person, at: try Clock.now(), by: client.account.name, environment.find)
      return (answer, here)
    } isDone: {
      $0.isDone || $1 == .done
    }
    switch here {
    case .isRoots: throw helping.refused(.blockedByRoot)
    case .notBlocked: _ = try taken(answer, helping)
    case .done: break
    }
    return .done(of: name, backupCodes: [], names: [])
  }

  private func request(_ verb: HelpOrder.Verb, _ helping: Helping) -> HelpRequest {
    HelpRequest(HelpOrder(verb, by: client.account.name), for: helping.person.name)
  }

  /// Done, or that many tries were lent.
  private func ask(_ verb: HelpOrder.Verb, _ helping: Helping, _ act: SessionAct) throws(Ending)
    -> HelpAnswer
  {
    let request = request(verb, helping)
    let answer = try recorded(act) { () throws(StoreTrouble) in
      try asked(request)
    } isDone: {
      $0.isDone
    }
    return try taken(answer, helping)
  }

  /// The same pass is given once, so that it can be asked for again where no answer came.
  private func asked(_ request: HelpRequest) throws(StoreTrouble) -> HelpAnswer {
    var answer = try environment.askFleet(request)
    if case .trouble = answer, case .give = request.order.verb {
      answer = try environment.askFleet(request)
    }
    if case .trouble = answer { throw .service(path: ServiceAuthority.rootSocket, .unknown) }
    return answer
  }

  private func taken(_ answer: HelpAnswer, _ helping: Helping) throws(Ending) -> HelpAnswer {
    switch answer {
    case .done, .lent: return answer
    case .notServed: throw helping.refused(.helpInFleet)
    case .refused(.changed): throw .refused(.changed)
    case .refused(let refusal): throw helping.refused(ChangeRefusal(refusal))
    case .told, .trouble: throw .refused(.unknown)
    }
  }
}

extension HelpAnswer {
  fileprivate var isDone: Bool {
    switch self {
    case .done, .lent: true
    case .notServed, .trouble, .told, .refused: false
    }
  }

  fileprivate var isNotBlocked: Bool {
    if case .refused(.notBlocked) = self { true } else { false }
  }
}

extension HelpedPerson {
  /// Nothing is counted before it is known that there is room for it.
  func hasEnough(of act: HelpAct) -> Bool {
    switch act {
    case .status, .block, .unblock: false
    case .unlock: hasEnough.tries
    case .pass, .passEnroll: hasEnough.passes
    }
  }
}

extension ChangeRefusal {
  fileprivate init(_ refusal: HelpAnswer.Refusal) {
    self =
      switch refusal {
      case .changed: .changed
      case .notLocked: .notLocked
      case .spent: .nothingToLend
      case .enough: .helpedEnough
      case .blockedByRoot: .blockedByRoot
      case .blockedByHelper: .blockedByHelper
      case .notBlocked: .notBlocked
      }
  }
}

/// The service of this machine, which asks the fleet.
enum HelpService {
  /// How often it is asked where it closes the connection without reading.
  private static let sendings = 3

  static func ask(_ request: HelpRequest) throws(StoreTrouble) -> HelpAnswer {
    let path = ServiceAuthority.rootSocket
    guard let frame = request.encoded() else { throw .outOfMemory }
    for _ in 0..<sendings {
      let socket = try ServiceSocket(to: path, timeLeft: LoginQuestion.patience)
      if let answer = try socket.ask(frame) {
        guard let told = HelpAnswer.decode(answer) else { throw .service(path: path, .garbage) }
        return told
      }
      // One of an older version.
      if socket.wasRead { return .notServed }
    }
    throw .service(path: path, .silent)
  }
}
