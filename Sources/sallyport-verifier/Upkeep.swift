import ArgumentParser
import SallyportVerifier

struct Distrust: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Take every code up to now as used, as after a restore.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try open(common, name: "distrust") { _, _ in }
    try self.database { () throws(DatabaseFault) in
      try database.beginCommand()
      try database.distrust()
    }
    print("codes up to now count as used; backup codes are judged again in a quarter of an hour")
  }
}

struct Migrate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete old events, as a role that owns the tables.")

  @OptionGroup var common: Common

  @Option(help: "Delete events that are older than this, such as 90d.")
  var prune: String

  func run() throws {
    guard prune.hasSuffix("d"), let days = Int(prune.dropLast()), (1...36_500).contains(days) else {
      throw Failure("--prune \(prune): not a number of days, such as 90d")
    }
    try common.actAsOwner()
    let words = try common.words()
    let gone = try database { () throws(DatabaseFault) in
      try Database.prune(words, days: days)
    }
    print("\(gone) events deleted")
  }
}
