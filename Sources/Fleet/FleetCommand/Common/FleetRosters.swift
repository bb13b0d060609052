import FleetProtocol
import FleetTransport
import SallyportCLI
package import SallyportCore
package import SallyportDoctor
import SallyportSupport

extension FleetEnvironment {
  /// As many at a time as a question has; after the first that is not answered no more are asked.
  package func roster(of names: [UserName]) -> FleetRoster {
    let verifiers: any FleetVerifiers
    do throws(CommandError) {
      let (file, identity) = try host()
      guard mayHave(.changes, file) else { return .keeps }
      verifiers = self.verifiers(file, identity)
    } catch {
      return .silent(error.message(Invocation(verb: "doctor")).text)
    }
    var people: [FleetRoster.Person] = []
    for start in stride(from: 0, to: names.count, by: RosterRequest.most) {
      let some = names[start..<min(start + RosterRequest.most, names.count)]
      switch verifiers.roster(RosterRequest(Array(some))) {
      case .told(let found): people += found
      case .silent(let why): return .silent(why)
      case .keeps: return .keeps
      }
    }
    return .told(people)
  }
}

extension FleetVerifiers {
  fileprivate func roster(_ request: RosterRequest) -> FleetRoster {
    let answer: RosterAnswer?
    do throws(MoveFault) {
      let body = try looking { () throws(MoveFault) in try manage(request.encoded()) }
      answer = RosterAnswer.decode(body, to: request)
    } catch {
      return .silent(error.text)
    }
    switch answer {
    case .told(let entries)?:
      return .told(
        zip(request.names, entries).map { name, entry in
          FleetRoster.Person(name, FleetRoster.Person.Place(entry.place), entry.level)
        })
    case .other(.notAllowed)?: return .keeps
    case .other(.trouble)?: return .silent("the verifier cannot read what the fleet has")
    case .other(.standing)?, .other(.done)?, nil:
      return .silent("unrecognized answer from the verifier; check its version")
    }
  }
}

extension FleetRoster.Person.Place {
  fileprivate init(_ place: RosterAnswer.Entry.Place) {
    self =
      switch place {
      case .enrolled(let factors): .enrolled(factors)
      case .notEnrolled: .notEnrolled
      case .taken(let host): .taken(by: host.text)
      case .unreadable: .unreadable
      }
  }
}
