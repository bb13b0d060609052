import ArgumentParser
import OneTimePassword
import SallyportLogin
import SallyportSupport
import SallyportVerifier

// The fleet changes its key while logins go on.

struct NextKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "next", abstract: "Make another key, from now on used for all that is saved.",
    discussion: """
      While logins go on, on one verifier:
        sallyport-verifier key next        each verifier that is up takes it
        sallyport-verifier key status      what is left under the former one
        sallyport-verifier key finish      the former one goes
      After a theft another way is needed: see sallyport-verifier(8).
      """)

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    let done = try asking { () throws(DatabaseFault) in try database.beginKey() }
    switch done {
    case .done:
      print("the key \(named(database.key.id)) seals from now on")
      tell("make a new copy: sallyport-verifier key show > FILE, then key check FILE")
    case .lacking(let names):
      throw Failure(
        "nothing seals with the next key yet: \(names.joined(separator: ", ")) cannot take it\n"
          + "hint: the log there says why; then this command again, or stop that verifier")
    case .isChanging:
      throw Failure(
        "the change before is not finished\nhint: sallyport-verifier key status, then key finish")
    case .unfinished:
      throw Failure(
        "verifiers of the former version may be there, which have one key\n"
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
    print("key: \(named(standing.present)) seals")
    if standing.isAnnounced { print("a next key was made: sallyport-verifier key next goes on") }
    let holders = try asking { () throws(DatabaseFault) in try database.keyHolders() }
    for one in holders {
      let keys = one.ids.isEmpty ? "not told" : one.ids.map(named).joined(separator: " and ")
      print("verifier: \(one.name): \(one.isAlive ? "up" : "SILENT"), keys \(keys)")
    }
    if standing.isChanging {
      print("former key: \(named(standing.oldest)), needed until sallyport-verifier key finish")
      let needs = try database.needs(standing)
      for line in needs.isEmpty ? ["nothing needs it any more"] : needs { print("  " + line) }
    }
  }
}

struct FinishKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "finish", abstract: "Remove the former key, everywhere, once nothing needs it.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForKeys()
    for _ in 0..<8 {
      let standing = try asking { () throws(DatabaseFault) in try database.keyStanding() }
      guard standing.isChanging else {
        throw Failure("no change of the key is under way\nhint: sallyport-verifier key next")
      }
      let needs = try database.needs(standing)
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
    throw Failure("others keep changing the row of the fleet: again")
  }
}

/// As it is shown: eight digits.
private func named(_ id: UInt32) -> String {
  let digits = String(id, radix: 16)
  return String(repeating: "0", count: 8 - digits.count) + digits
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
  /// What needs the key of before, for people.
  fileprivate func needs(_ standing: KeyStanding) throws -> [String] {
    var lines: [String] = []
    let late = try asking { () throws(DatabaseFault) in try lackingKey(standing) }
    for name in late { lines.append("verifier \(name) does not have the new key") }
    let left = try asking { () throws(DatabaseFault) in try keyLeft() }
    if !left.isEmpty {
      let names = (left.people + left.hosts).map { String(decoding: $0, as: UTF8.self) }
      lines.append(
        "\(left.count) rows are sealed with it, such as those of \(names.joined(separator: ", ")): "
          + "the verifiers seal them again")
    }
    let behind = try asking { () throws(DatabaseFault) in try hostsBehind() }
    for host in behind {
      lines.append(
        "host \(host.name), last seen \(host.seen), may have used backup codes by it: it is done a "
          + "quarter of an hour after it is back, or after sallyport-verifier hosts give-up "
          + host.name)
    }
    return lines
  }
}
