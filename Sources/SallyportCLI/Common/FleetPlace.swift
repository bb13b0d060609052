import SallyportDoctor
import SallyportLine
import SallyportLogin
import SallyportSystem

/// What a host of a fleet has of it, and how its verifiers are asked: all that tests replace.
struct FleetPlace {
  /// Of `sallyport-fleet.conf` and `sallyport-fleet.key`.
  var directory = FleetFile.directory
  /// The backup codes that are good while no verifier can be asked.
  var reserve = "/var/lib/sallyport/reserve"
  var line: (FleetFile, Identity) -> any FleetLine = { LineClient($0, $1) }
  /// By whom people of the fleet are judged and changed.
  var examiner: () -> any Examiner = { ServiceExaminer(at: ServiceExaminer.rootSocket) }
  /// Has sallyportd take what is in the directory by now. Gives what is left to do by hand.
  var tellService: (Machine) -> String? = FleetPlace.tellService

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
