import CService
import FleetProtocol
import FleetTransport
import OneTimePassword
package import SallyportCore
package import SallyportLogin
import SallyportService
import SallyportSupport

// What helpers do for people of the fleet: a verifier decides and counts it, or nobody.
extension Relay {
  package func answer(
    _ request: HelpRequest, until deadline: UInt64, log: @Sendable (LogLevel, LogLine) -> Void
  ) -> HelpAnswer {
    let fleet: any FleetVerifiers
    do throws(MembershipFault) {
      fleet = try verifiers()
    } catch {
      log(.error, request.refused(error.line.bytes))
      return .notServed
    }
    let now = sys_monotonic()
    let left = now < deadline ? min((deadline - now) / 1_000_000, Relay.mostForHelp) : 0
    do throws(TransportFault) {
      let answer = try fleet.ask(.management, within: left) {
        $0 > 0 ? PersonRequest(.help(request.order), of: request.name).encoded() : nil
      }
      return told(answer, request, log)
    } catch {
      let reason: StaticString =
        switch error {
        case .away, .unpinned: "no verifier can be asked"
        case .unsealed: "no verifier has this host's seal: sallyport fleet status"
        case .unknown: "no answer came; the result is unknown"
        case .stranger: "no verifier knows this host: sallyport fleet status"
        case .revoked: "this host was revoked: sallyport fleet leave"
        }
      log(.warning, request.refused(reason))
      return error == .unknown ? .trouble : .notServed
    }
  }

  /// Milliseconds: as long as a verifier takes to answer, or to say that it cannot.
  private static var mostForHelp: UInt64 { 2400 }

  private func told(_ answer: VerifierAnswer, _ request: HelpRequest, _ log: LogWriter)
    -> HelpAnswer
  {
    if answer == .databaseAway {
      log(.warning, request.refused("no verifier can be asked"))
      return .notServed
    }
    // An older verifier answers with nothing.
    if answer == .notServed || answer.answers(.management) && answer.body.isEmpty {
      log(.notice, request.refused("the verifiers do not serve it yet (migrate --finish)"))
      return .notServed
    }
    guard answer.answers(.management), let told = HelpAnswer.decode(answer.body) else {
      log(.error, request.refused("unrecognized answer from the verifier"))
      return .trouble
    }
    if case .notServed = told {
      log(
        .notice,
        request.refused("this host has no right to it, or used it up: sallyport fleet status"))
    }
    return told
  }
}

extension HelpRequest {
  fileprivate func refused(_ reason: StaticString) -> LogLine { refused(bytes(of: reason)) }

  fileprivate func refused(_ reason: [UInt8]) -> LogLine {
    var line = LogLine("a helper's act for somebody of the fleet was refused:")
    line.add(user: name.bytes)
    line.add(" by=")
    line.add(field: order.helper.bytes)
    line.add(": ")
    line.add(reason)
    return line
  }
}
