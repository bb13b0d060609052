import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// What a host of a fleet has of it, and how its verifiers are asked: all that tests replace.
package struct FleetEnvironment {
  /// Of `sallyport-fleet.conf` and `sallyport-fleet.key`.
  var directory = FleetFile.directory
  /// The backup codes that are good while no verifier can be asked.
  var reserve = "/var/lib/sallyport/reserve"
  /// The keys with which it seals what it asks.
  var seal = HostSeal.path
  var asking: (FleetFile, Identity, HostSeal?) -> any FleetVerifiers = {
    VerifierPool($0, $1, seal: $2)
  }
  /// What verifies and changes users of the fleet.
  var authority: () -> any CodeAuthority = { ServiceAuthority(at: ServiceAuthority.rootSocket) }
  /// Has sallyportd take what is in the directory by now. Gives what is left to do by hand.
  var tellService: (Machine) -> String? = FleetEnvironment.tellService

  /// That of this machine.
  package static var usual: FleetEnvironment { FleetEnvironment() }

  var file: String { "\(directory)/\(FleetFile.name)" }
  var key: String { "\(directory)/\(FleetFile.keyName)" }
  var isUsual: Bool { directory == FleetFile.directory }

  private static func tellService(_ machine: Machine) -> String? {
    guard machine.isRunBySystemd else { return "start sallyportd, or start it again" }
    let commands = [
      ["systemctl", "enable", "--now", "sallyport.socket", "sallyport-root.socket"],
      ["systemctl", "try-restart", "sallyport.service"],
    ]
    for words in commands where machine.run(words).value?.status != 0 {
      return words.joined(separator: " ")
    }
    return nil
  }
}

extension FleetEnvironment {
  /// What this host knows of its fleet; nil: it is in none.
  func membership() throws(CommandError) -> FleetFile? {
    do throws(FleetFileFault) {
      return try FleetFile.read(in: directory)
    } catch {
      if error.isAbsent { return nil }
      throw CommandError(.configuration, printable(error.text.utf8, limit: 400))
    }
  }

  /// What this host is, and its key; throws where this machine is no host.
  func host() throws(CommandError) -> (FleetFile, Identity) {
    guard let file = try membership() else { throw .isNoHost }
    guard let identity = try identity() else { throw .key(.absent, path: key) }
    _ = try rethrow(
      { () throws(PrivateFile.Fault) in try HostSeal.read(at: seal, of: identity.pin) },
      as: { CommandError.seal($0, path: seal) })
    return (file, identity)
  }

  /// The verifiers of this host, which asks them by its seal where it has one.
  func verifiers(_ file: FleetFile, _ identity: Identity) -> any FleetVerifiers {
    let found = try? HostSeal.read(at: seal, of: identity.pin)
    return asking(file, identity, found ?? HostSeal(identity.pin, isOnly: true))
  }

  /// The verifiers, and why they refuse what needs this right, where they do; throws where they say
  /// that this host does not have it. What is left of it they know alone. `isBegun`: what was begun
  /// is ended without it.
  func verifiersForMoves(_ right: HostRight, isBegun: Bool = false) throws(CommandError)
    -> (any FleetVerifiers, missing: (UserName) -> MissingRight)
  {
    let (file, identity) = try host()
    let told = isBegun ? nil : rights()
    if !isBegun, !(told?.holds(right) ?? file.enrolls) {
      throw .move(.notAllowed(MissingRight(right, told, host: file.host)), nil)
    }
    let place = self
    return (verifiers(file, identity), { place.missing(right, file, for: $0) })
  }

  /// The host's key; nil where there is none.
  func identity() throws(CommandError) -> Identity? {
    do throws(PrivateFile.Fault) {
      return try Identity.read(at: key)
    } catch {
      if error == .absent { return nil }
      throw .key(error, path: key)
    }
  }
}

extension FleetVerifiers {
  /// The answer's bytes. Throws `unknown` where it may have been done.
  func move(_ request: MoveRequest) throws(MoveFault) -> [UInt8] {
    try manage(request.encoded())
  }

  /// `body`: of a frame of that kind; nil where memory was short.
  func manage(_ body: Secret?) throws(MoveFault) -> [UInt8] {
    let patience: UInt64 = 8000
    guard let body else { throw .store(.outOfMemory) }
    let answer = try rethrow(
      { () throws(TransportFault) in
        try ask(.management, body, within: patience)
      }, as: { $0 == .unknown ? MoveFault.unknown : .transport($0) })
    if answer == .databaseAway { throw .databaseAway }
    if answer == .notServed { throw .notServed }
    guard answer.answers(.management) else { throw .unknown }
    // It has read no request: what was asked is of a later version than the verifier.
    if answer.body.isEmpty { throw .notServed }
    return answer.body
  }
}
