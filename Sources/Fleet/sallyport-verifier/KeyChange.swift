import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportVerifier

// The fleet changes its key while logins go on.

struct NextKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "next", abstract: "Make a new key, which seals all that is saved from now on.",
    discussion: """
      While logins go on, on one verifier:
        sallyport-verifier key next        each verifier that is up takes it
        sallyport-verifier key status      what still needs the former key
        sallyport-verifier key finish      each verifier removes the former key
      After a theft another way is needed: see sallyport-verifier(8).
      """)

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    let done = try asking { () throws(DatabaseFault) in try database.beginKey() }
    switch done {
    case .done:
      print("the key \(FleetKey.named(database.key.id)) seals from now on")
      tell("make a new copy: sallyport-verifier key show > FILE, then key check FILE")
    case .lacking(let names):
      throw Failure(
        "nothing seals with the next key yet: \(names.joined(separator: ", ")) cannot take it\n"
          + "hint: the log there says why; run this again, or stop that verifier")
    case .holding(let names):
      throw Failure(
        "no key was made: \(names.joined(separator: ", ")) still has the key before this one\n"
          + "hint: it goes within a minute, or the log there says why not; then run this again")
    case .elsewhere(let names):
      throw Failure(
        "no key was made: rows are sealed with another key, as where the table fleet alone was "
          + "put back\nhint: run this on \(names.joined(separator: " or ")), which has that key")
    case .isChanging:
      throw Failure(
        "the last change of the key is not finished\n"
          + "hint: sallyport-verifier key status, then sallyport-verifier key finish")
    case .unfinished:
      throw Failure(
        "verifiers of the former version may be running, and they hold only one key\n"
          + "hint: sallyport-verifier migrate --finish")
    }
  }
}

struct KeyStatus: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show which verifiers have which keys, and what is left.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    let standing = try asking { () throws(DatabaseFault) in try database.keyStanding() }
    print("key: \(FleetKey.named(standing.present)) seals")
    if standing.isAnnounced { print("a next key was made: sallyport-verifier key next goes on") }
    let holders = try asking { () throws(DatabaseFault) in try database.keyHolders() }
    for one in holders {
      let names = one.ids.map(FleetKey.named)
      let keys = names.isEmpty ? "not told" : names.joined(separator: " and ")
      print("verifier: \(one.name): \(one.isAlive ? "up" : "SILENT"), keys \(keys)")
    }
    if standing.isChanging {
      let former = FleetKey.named(standing.oldest)
      print("former key: \(former), needed until sallyport-verifier key finish")
      let needs = try database.needs(standing, without: [])
      for line in needs.isEmpty ? ["nothing needs it any more"] : needs { print("  " + line) }
    }
  }
}

struct FinishKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "finish", abstract: "Remove the former key, everywhere, once nothing needs it.")

  @OptionGroup var common: Common

  @Option(
    help: ArgumentHelp(
      "Leave the rows of this person, which fail verification, as they are; once for each.",
      valueName: "user"))
  var without: [String] = []

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    for _ in 0..<8 {
      let standing = try asking { () throws(DatabaseFault) in try database.keyStanding() }
      guard standing.isChanging else {
        throw Failure("no change of the key is under way\nhint: sallyport-verifier key next")
      }
      let needs = try database.needs(standing, without: Set(without.map { Array($0.utf8) }))
      guard needs.isEmpty else {
        throw Failure(
          "the former key is needed:\n  " + needs.joined(separator: "\n  ")
            + "\nhint: sallyport-verifier key status")
      }
      if try asking({ () throws(DatabaseFault) in try database.endKey(standing) }) {
        print("the former key counts no more: each verifier removes it within a minute")
        tell("make a new copy: sallyport-verifier key show > FILE, then key check FILE")
        return
      }
    }
    throw Failure("others keep changing the row of the fleet: run this again")
  }
}

extension Common {
  func openForKeys() throws -> Database {
    let database = try open(name: "key") { _, line in
      tell(String(decoding: line.bytes, as: UTF8.self))
    }
    try asking { () throws(DatabaseFault) in try database.beginCommand() }
    return database
  }
}

extension Database {
  /// What needs the key of before, for people. `left`: whose rows stay as they are, as root has
  /// said.
  fileprivate func needs(_ standing: KeyStanding, without left: Set<[UInt8]>) throws -> [String] {
    let late = try asking { () throws(DatabaseFault) in try lackingKey(standing) }
    var lines = late.map { "verifier \($0) does not have the new key" }
    lines += try asking { () throws(DatabaseFault) in try keyLeft() }.needs(without: left)
    let behind = try asking { () throws(DatabaseFault) in try hostsBehind() }
    for host in behind {
      lines.append(
        "host \(host.name), last seen \(host.seen), may have used backup codes by it: "
          + (host.told
            ? "that ends within half an hour, unless its log says that it cannot keep new keys"
            : "that ends half an hour after it is back, with sallyport of this version")
          + ", or after sallyport-verifier hosts give-up \(host.name)")
    }
    return lines
  }
}

extension KeyLeft {
  /// How many people are named.
  private static let most = 20

  fileprivate func needs(without left: Set<[UInt8]>) -> [String] {
    var lines: [String] = []
    if count > 0 {
      let names = names.map { printable($0, limit: 256) }
      lines.append(
        "\(count) \(count == 1 ? "row is" : "rows are") sealed with it"
          + (names.isEmpty ? "" : ", such as those of \(names.joined(separator: ", "))")
          + ": the verifiers seal them again; where they log that they have seen newer rows, "
          + "restart one verifier after the other")
    }
    let people = disbelieved.filter { !left.contains($0) }
    for one in people.prefix(Self.most) {
      let name = printable(one, limit: 256)
      lines.append(
        "the rows of \(name) fail verification: replace them by those of a backup; or "
          + "sallyport-verifier key finish --without \(name), and no key opens them again")
    }
    if people.count > Self.most { lines.append("and \(people.count - Self.most) more such people") }
    return lines
  }
}
