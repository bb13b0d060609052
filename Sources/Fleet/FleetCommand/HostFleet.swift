package import ArgumentParser
import FleetProtocol
import FleetTransport
import Glibc
import SallyportAdministration
package import SallyportCLI
package import SallyportCore
package import SallyportDoctor
import SallyportSupport
package import SallyportSystem

/// The command of a machine that can be a host of a fleet.
struct SallyportWithFleet: ParsableCommand {
  static let configuration = Sallyport.configuration(with: [Fleet.self])
}

extension FleetEnvironment: FleetAccess {
  package var command: any ParsableCommand.Type { SallyportWithFleet.self }

  package var isHost: Bool {
    var facts = stat()
    // SAFETY: a C string that lives for the call, which fills the buffer.
    return unsafe lstat(file, &facts) == 0 || errno != ENOENT
  }

  package func mustBeHost() throws(CommandError) { _ = try host() }

  package func person(_ account: Account, under policy: Policy, in context: Context) -> any Person {
    FleetPerson(account, under: policy, in: context, of: self)
  }

  package func push(of account: Account, from store: Store) -> String {
    let mark = (try? store.moving(account) { $0.mark }) ?? nil
    return FleetMove(name: account.name.typedOrShown, mark: mark ?? .merge).hint
  }

  package func doctorFacts(_ store: Store, in context: Context) throws(CommandError) -> FleetFacts?
  {
    guard let (file, identity) = try? host() else { return nil }
    let report = FleetStatus.report(file, identity, of: self, try context.time())
    let told = report.canVerify ? rights() : nil
    let people = HostAccounts(store: store, conf: nil, context: context)
    let candidates = BreakGlass.candidates(on: context.machine)
    return FleetFacts(
      verifiers: report.states.map { state in
        FleetFacts.Verifier(
          address: state.address.text, answer: state.outcome, text: report.say(state),
          clockOffset: state.status.map { $0.now.seconds - report.now.seconds })
      }, breakGlass: try people.breakGlass(among: candidates), unasked: try people.unasked(),
      rights: told?.lines.map { String($0.dropFirst(2)) } ?? [],
      closing: told.flatMap { $0.isClosed ? $0.closing : nil })
  }
}
