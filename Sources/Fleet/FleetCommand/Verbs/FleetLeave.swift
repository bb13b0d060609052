import ArgumentParser
import FleetTransport
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport fleet leave`
struct FleetLeave: Verb {
  static let configuration = CommandConfiguration(
    commandName: "leave", abstract: "Make this machine a host of no fleet.")

  @OptionGroup var shared: StoreOptions

  @Flag(help: "Leave although people would be refused.")
  var force = false

  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    @OrNull var host: String?
    var left = true
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "fleet leave", store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let place = try context.placeForRoot()
    let store = try context.store(shared)
    let host = try self.host(place)
    if !force {
      let moves = try HostAccounts(store: store, conf: policy.conf, context: context).underWay()
      if !moves.isEmpty {
        let hints = moves.prefix(8).map(\.hint)
        throw CommandError {
          Message(
            "a move to or from the fleet is not finished, and its user is refused here until it "
              + "is: \(shown(moves.map(\.name))); nothing was changed", .refused,
            hints: hints + [
              $0.again("--force", remark: "leaves all the same: nobody verifies their codes then")
            ])
        }
      }
      try refuseIfLockedOut(store, place, context)
    }
    // Nobody tells any more who has them.
    try storing { () throws(StoreTrouble) in
      try store.note(nil, for: try store.heldTokens().filter { $0.holder?.authority == .fleet })
    }
    warn(of: unreported(place), context)
    // First what makes it a host. What is left of the rest by a crash means nothing then, and goes
    // when this is run again.
    let left = try context.recorder(shared).record(.fleetLeave) { () throws(CommandError) in
      try place.removeMembership()
      let left = place.tellService(context.machine)
      try removeReserve(place)
      try place.removeKey()
      return left
    }
    let next =
      [left.map { "  \($0)" }].compactMap { $0 } + [
        "  sallyport-verifier revoke \(host.map(shellQuoted) ?? "NAME")  # on a verifier"
      ]
    context.output(shared).answer(
      Answer(host: host),
      (["This machine is no host of a fleet any more. Next:"] + next).joined(separator: "\n"))
  }

  /// The users with a backup code that was used here, and that the fleet may not know to be used.
  private func unreported(_ place: FleetEnvironment) -> [String] {
    guard let names = try? place.reserveStore.pendingNames() else { return [] }
    return names.map { $0.user?.text ?? $0.directory }
  }

  private func warn(of names: [String], _ context: Context) {
    if names.isEmpty { return }
    context.output(shared).warn(
      "the fleet does not know that a backup code was used here, of: \(shown(names)); make new "
        + "ones on another host (sallyport backup-codes NAME --regenerate)")
  }

  /// Its name; nil where it is not known any more. Throws where there is nothing to leave.
  private func host(_ place: FleetEnvironment) throws(CommandError) -> String? {
    do throws(CommandError) {
      if let file = try place.membership() { return file.host }
    } catch {
      // A file that cannot be read can be removed all the same.
      return nil
    }
    if try place.hasKey() { return nil }
    throw .isNoHost
  }

  // MARK: who would be refused

  private func refuseIfLockedOut(_ store: Store, _ place: FleetEnvironment, _ context: Context)
    throws(CommandError)
  {
    let path = policy.conf ?? context.policyFile ?? "/etc/security/sallyport.conf"
    let text = try storing { () throws(StoreTrouble) in
      try store.policyText(at: Array(path.utf8), optional: true)
    }
    if let text {
      let file = printable(path.utf8, limit: 255)
      let lines = PolicyText(path, text).fleetLines()
      if lines?.isEmpty != true {
        let text =
          lines?.first.map {
            "\(file):\($0): verification = fleet: the users of this line could not log in without "
              + "the fleet"
          } ?? "\(file): cannot be read, so nothing says whose codes the fleet verifies"
        throw CommandError {
          Message(
            text, .configuration,
            hints: [
              "sallyport config edit  # and delete that line",
              $0.again("--force", remark: "to join again at once: until then they are refused"),
            ])
        }
      }
    }
    let strangers = try strangers(store, place)
    if !strangers.isEmpty {
      throw CommandError {
        Message(
          "these users are enrolled in the fleet alone, and would be refused: \(shown(strangers))",
          .refused,
          hints: [
            "sallyport enroll NAME", $0.again("--force", remark: "leaves all the same"),
          ])
      }
    }
  }

  /// Who has logged in here by the fleet, as its reserve says, and is not enrolled here.
  private func strangers(_ store: Store, _ place: FleetEnvironment) throws(CommandError) -> [String]
  {
    let reserve = place.reserveStore
    let names: [StoredName]
    do throws(StoreTrouble) {
      names = try reserve.enrolledNames()
    } catch {
      return []
    }
    return names.compactMap(\.user).filter { name in
      guard let account = try? Accounts.find(name), account.uid != nil else { return false }
      return (try? store.load(account)) == nil
    }.map(\.text)
  }

  /// Without a fleet no login uses it; it holds digests of backup codes.
  private func removeReserve(_ place: FleetEnvironment) throws(CommandError) {
    let reserve = place.reserveStore
    let names: [StoredName]
    do throws(StoreTrouble) {
      names = try reserve.enrolledNames()
    } catch {
      if case .noStore = error { return }
      throw .store(error)
    }
    for name in names {
      _ = try storing { () throws(StoreTrouble) in try reserve.remove(stored: name) }
    }
  }
}
