import ArgumentParser
import FleetProtocol
import FleetTransport
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport fleet take`
struct FleetTake: Verb {
  static let configuration = CommandConfiguration(
    commandName: "take",
    abstract: "Move an enrollment from the fleet back to this machine's files.",
    discussion: """
      The apps keep working, here only: all other hosts refuse the user. If the command \
      is interrupted, run it again: it continues.
      """)

  @Option(
    name: [.customLong("user"), .customShort("u")],
    help: ArgumentHelp("Take this user.", valueName: "user"))
  var user: String

  @Flag(help: "Take the user although other hosts have let him in within 30 days.")
  var force = false

  @OptionGroup var shared: StoreOptions
  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    let user: String
    var taken = true
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "fleet take", user: user, store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let place = try context.placeForRoot()
    let store = try context.store(shared)
    let people = HostAccounts(store: store, conf: policy.conf, context: context)
    let account = try context.meantAccount(user, context.output(shared))
    // An earlier take has his secrets here.
    var isBegun = false
    if case .take = people.mark(of: account) { isBegun = true }
    let (verifiers, missing) = try place.verifiersForMoves(.takes, isBegun: isBegun)
    let taker = MoveFromFleet(
      store: store, reserve: place.reserveStore, verifiers: verifiers, missing: missing,
      isForced: force, prepare: { () throws(StoreTrouble) in try context.prepare(store) })
    let user = account.name.text
    let recorder = try context.recorder(shared)
    do throws(MoveFault) {
      guard account.uid != nil else { throw .noAccount }
      guard people.isVerified(account, byFleet: false) else { throw .isTheFleets }
      try recorder.record(.fleetTake, for: account.name) { () throws(MoveFault) in
        try taker.take(account)
      }
    } catch {
      throw .move(error, user)
    }
    let shown = printable(user.utf8, limit: 64)
    context.output(shared).answer(
      Answer(user: user),
      "\(shown) is enrolled by the files of this machine again, and in the fleet no more. "
        + "Hosts that ask the fleet refuse \(shown).")
  }
}
