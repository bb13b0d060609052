import FleetProtocol
import FleetTransport
package import SallyportCLI
package import SallyportCore
import SallyportSupport

extension FleetEnvironment {
  package func log(of wanted: FleetLog.Wanted, since start: UnixTime, of names: [UserName])
    -> FleetLog?
  {
    do throws(CommandError) {
      let (file, identity) = try host()
      guard mayHave(.changes, file) else { return nil }
      let verifiers = verifiers(file, identity)
      let kinds: [EventsRequest.Kinds] =
        switch wanted {
        case .logins: [.both]
        case .acts: [.acts]
        case .both: [.both, .acts]
        }
      let logs = kinds.compactMap { kinds in
        var search = EventSearch(verifiers, kinds, since: start, of: names)
        return search.log(of: file.host)
      }
      if logs.isEmpty { return nil }
      return FleetLog(
        of: file.host, logs.flatMap(\.events), isCut: logs.contains(where: \.isCut),
        trouble: logs.compactMap(\.trouble).first)
    } catch {
      let why = error.message(Invocation(verb: "log")).text
      return FleetLog(of: "", [], isCut: false, trouble: why)
    }
  }
}

/// Asks for the newest events, and for older ones while there are any that can be shown. Refusals
/// push no login out: each kind has a bound of its own.
private struct EventSearch {
  private let verifiers: any FleetVerifiers
  private var request: EventsRequest
  private var (accepted, refused) = (0, 0)
  private var events: [FleetLog.Event] = []

  /// Each has looked at no more than 20,000 rows.
  private static let mostQuestions = 500

  init(
    _ verifiers: any FleetVerifiers, _ kinds: EventsRequest.Kinds, since start: UnixTime,
    of names: [UserName]
  ) {
    self.verifiers = verifiers
    let some = Array(names.prefix(EventsRequest.mostNames))
    request = EventsRequest(since: start, upTo: EventsRequest.latest, kinds, of: some)
  }

  /// nil: this host may not know them.
  mutating func log(of host: String) -> FleetLog? {
    for _ in 0..<EventSearch.mostQuestions {
      let (entries, next): ([EventsAnswer.Entry], UInt64?)
      do throws(EventFault) { (entries, next) = try verifiers.events(request) } catch {
        switch error {
        case .keeps where events.isEmpty: return nil
        // Its rights were changed just now.
        case .keeps: return ended(host, trouble: "this host may not know them any more")
        case .silent(let why): return ended(host, trouble: why)
        }
      }
      for entry in entries { take(entry) }
      guard let next else { return ended(host) }
      request.upTo = next
      switch (accepted < FleetLog.most, refused < FleetLog.most) {
      case (true, true): break
      // Acts are counted as accepted, and nothing is refused then.
      case (false, _) where request.kinds == .acts: return ended(host, isCut: true)
      case (true, false): request.kinds = .accepted
      case (false, true): request.kinds = .refused
      case (false, false): return ended(host, isCut: true)
      }
    }
    return ended(host, isCut: true)
  }

  private mutating func take(_ entry: EventsAnswer.Entry) {
    let event = FleetLog.Event(
      UnixTime(Int64(clamping: entry.at / 1_000_000)), host: entry.host, user: entry.name,
      service: entry.service, address: entry.address, outcome: entry.outcome)
    if event.isRefusal { refused += 1 } else { accepted += 1 }
    if (event.isRefusal ? refused : accepted) <= FleetLog.most { events.append(event) }
  }

  private func ended(_ host: String, isCut: Bool = false, trouble: String? = nil) -> FleetLog {
    let isOver =
      max(accepted, refused) > FleetLog.most || [.accepted, .refused].contains(request.kinds)
    return FleetLog(of: host, events, isCut: isCut || isOver, trouble: trouble)
  }
}

/// Why no events are told.
private enum EventFault: Error {
  case keeps
  case silent(String)
}

extension FleetVerifiers {
  fileprivate func events(_ request: EventsRequest) throws(EventFault)
    -> ([EventsAnswer.Entry], UInt64?)
  {
    let answer: EventsAnswer?
    do throws(MoveFault) {
      let body = try looking { () throws(MoveFault) in try manage(request.encoded()) }
      answer = EventsAnswer.decode(body, to: request)
    } catch {
      throw .silent(error.text)
    }
    switch answer {
    case .told(let entries, let next)?: return (entries, next)
    case .other(.notAllowed)?: throw .keeps
    case .other(.trouble)?: throw .silent("the verifier cannot read what the fleet has")
    case .other(.standing)?, .other(.done)?, nil:
      throw .silent("unrecognized answer from the verifier; check its version")
    }
  }
}
