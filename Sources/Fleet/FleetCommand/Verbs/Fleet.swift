import ArgumentParser
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport fleet`
struct Fleet: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Join a fleet, whose verifiers check the codes of many hosts.",
    subcommands: [
      FleetJoin.self, FleetStatus.self, FleetPush.self, FleetTake.self, FleetLeave.self,
    ])
}

extension Context {
  /// What this machine has of a fleet. Throws `notRoot` if the caller may not change it.
  func placeForRoot() throws(CommandError) -> FleetEnvironment {
    guard let place = fleet as? FleetEnvironment else { throw .noFleet }
    guard effectiveUser == 0 || !place.isUsual else { throw .notRoot }
    return place
  }
}

extension FleetEnvironment {
  /// The backup codes that this host keeps for the time when the fleet is away.
  var reserveStore: Store {
    Store(root: Array(reserve.utf8), owner: isUsual ? .root : .effectiveUser)
  }

  func hasKey() throws(CommandError) -> Bool {
    do throws(SystemError) {
      _ = try facts(of: key)
      return true
    } catch {
      if error.number == ENOENT { return false }
      throw .system(key, error)
    }
  }

  // MARK: in an order that survives a crash at each step

  /// Writes the key, durably. It means nothing before there is the other file.
  func writeKey(_ pem: Secret) throws(CommandError) {
    try put(pem, at: key, mode: 0o600)
  }

  /// Writes the keys of its seal, durably, in place of others; false where it cannot.
  func write(_ keys: SealKeys, of host: Pin) -> Bool {
    HostSeal(host, at: seal).take(keys)
  }

  /// Writes what makes this machine a host, durably: last.
  func write(_ file: FleetFile) throws(CommandError) {
    try put(Array(file.written().utf8), at: self.file, mode: 0o644)
  }

  /// Removes what makes it one, durably: first.
  func removeMembership() throws(CommandError) { try remove(file) }

  func removeSeal() throws(CommandError) {
    if (try? facts(of: seal)) != nil { try remove(seal) }
  }

  func removeKey() throws(CommandError) {
    try removeSeal()
    try remove(key)
  }

  private func put(_ content: some Content, at path: String, mode: mode_t)
    throws(CommandError)
  {
    try rethrow(
      { () throws(SystemError) in try makeFile(path, mode: mode, content) },
      as: {
        CommandError.system(path, $0)
      })
  }

  private func remove(_ path: String) throws(CommandError) {
    removeFile(path + ".new")
    let isRemoved = removeFile(path)
    let error = SystemError.last
    if !isRemoved, error.number != ENOENT { throw .system(path, error) }
    try rethrow(
      { () throws(SystemError) in try syncParent(of: path) },
      as: {
        CommandError.system(path, $0)
      })
  }
}

extension CommandError {
  /// A file cannot be written or removed.
  fileprivate static func system(_ path: String, _ error: SystemError) -> CommandError {
    let text = "\(printable(path.utf8, limit: 255)): \(errnoText(error.number))"
    return CommandError { Message(text, .inputOutput, hints: [$0.again(remark: "goes on")]) }
  }
}
