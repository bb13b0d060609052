import ArgumentParser
import SallyportCore
import SallyportVerifier

struct ReplaceKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replace",
    abstract: "After a theft: seal everything with a new key, while no verifier runs.",
    discussion: """
      The new key is on this machine alone: on the others remove the file key, and then:
        sallyport-verifier key take FILE      with a copy that key show prints here
      Who had the former key may have everybody's secret: see sallyport-verifier(8).
      """)

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    let file = RevocationFile(common.pathOfRevoked, key: database.key)
    let done = try asking { () throws(DatabaseFault) in try database.replaceKey(file) }
    switch done {
    case .done(let people):
      print("everything is sealed with a new key, and the former one is removed here")
      for one in people {
        print("but not the rows of \(printable(one, limit: 256)), which fail verification")
      }
      tell("people's secrets are as before: each of them has to enroll again")
    case .alive(let names):
      throw Failure(
        "verifiers are up: \(names.joined(separator: ", "))\n"
          + "hint: stop each of them, wait ten seconds, and run this again")
    case .isChanging:
      throw Failure(
        "a change of the key is not finished, and the former key opens its new one\n"
          + "hint: start a verifier; sallyport-verifier key finish; stop it, and run this again")
    case .unfinished:
      throw Failure(
        "the tables are of the former version\nhint: sallyport-verifier migrate --finish")
    case .left(let left):
      throw Failure(
        "\(left.count) \(left.count == 1 ? "row is" : "rows are") locked, or were changed "
          + "meanwhile: run this again")
    }
  }
}
