import FleetProtocol
import FleetTransport
package import SallyportCLI
import SallyportCore
import SallyportSupport

extension FleetEnvironment {
  package func eachPage(_ body: ([FleetMember]) throws(CommandError) -> Void) throws(CommandError) {
    let (file, identity) = try host()
    guard mayHave(.changes, file) else { throw .mayNotSee(missing(.changes, file)) }
    let verifiers = self.verifiers(file, identity)
    var request = PeopleRequest(after: [])
    while true {
      guard let (entries, isLast) = try verifiers.people(request) else {
        throw .mayNotSee(missing(.changes, file))
      }
      try body(entries.map(FleetMember.init))
      // Each page goes on behind the one before it.
      guard !isLast, let last = entries.last else { return }
      request = PeopleRequest(after: last.name)
    }
  }
}

extension FleetVerifiers {
  /// nil: this host may not see them.
  fileprivate func people(_ request: PeopleRequest) throws(CommandError)
    -> (entries: [PeopleAnswer.Entry], isLast: Bool)?
  {
    let answer: PeopleAnswer?
    do throws(MoveFault) {
      let body = try looking { () throws(MoveFault) in try manage(request.encoded()) }
      answer = PeopleAnswer.decode(body, to: request)
    } catch {
      throw CommandError { error.looked(at: $0) }
    }
    switch answer {
    case .told(let entries, let isLast)?: return (entries, isLast)
    case .other(.notAllowed)?: return nil
    case .other(.trouble)?:
      throw CommandError(
        .inputOutput, "the verifier cannot read what the fleet has",
        hints: ["journalctl -u sallyport-verifier  # on the verifiers says why"])
    case .other(.standing)?, .other(.done)?, nil:
      throw CommandError(
        .inputOutput, "unrecognized answer from the verifier; check its version",
        hints: ["sallyport fleet status"])
    }
  }
}

extension CommandError {
  static func mayNotSee(_ missing: MissingRight) -> CommandError {
    CommandError(
      .notPermitted, "this host may not see the people of the fleet: it \(missing.text)",
      hints: [missing.hint])
  }
}

extension MoveFault {
  /// Of what was only asked.
  fileprivate func looked(at invocation: Invocation) -> Message {
    let said = message(of: nil, at: invocation)
    return said.status == .busy
      ? Message(said.text, said.status, hints: ["sallyport fleet status"]) : said
  }
}

extension FleetMember {
  fileprivate init(_ entry: PeopleAnswer.Entry) {
    let user = UserName(entry.name)
    let block = user.flatMap { user in entry.block.map { $0.block(of: user) } }
    // No login has such a name.
    self.init(
      entry.name, user == nil ? .unreadable : Place(entry.place), level: entry.level, block: block)
  }
}

extension FleetMember.Place {
  fileprivate init(_ place: PeopleAnswer.Place) {
    switch place {
    case .enrolled(let own):
      let lock: FleetMember.Lock =
        switch own.lock {
        case .none: .none
        case .until(let time): .until(time)
        case .forGood: .forGood
        }
      self = .enrolled(
        FleetMember.Enrolled(
          own.authenticators.map(\.text), backupCodesLeft: own.backupCodesLeft, since: own.since,
          lastUse: own.lastUse, openPasses: own.openPasses, lock: lock))
    case .notEnrolled: self = .notEnrolled
    case .taken(let host): self = .taken(by: host.text)
    case .unreadable: self = .unreadable
    }
  }
}
