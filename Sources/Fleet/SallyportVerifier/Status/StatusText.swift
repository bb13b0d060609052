// The status of the fleet, for people and as JSON.

extension FleetStatus {
  /// For people, without line ends; problems and their consequences come last.
  package var lines: [String] {
    var lines = [
      "schema: \(facts.schema)", "users: \(facts.users.map { "\($0)" } ?? "not counted")",
      "database: primary, timeline \(facts.timeline), \(standbys)",
    ]
    lines += verifiers.map(\.line) + hosts.map(\.line)
    lines += outcomes.map { "last day: \($0.word): \($0.count)" }
    return lines + warnings.map { "warning: \($0.text)" }
  }

  private var standbys: String {
    if facts.synchronous.isEmpty { return "no synchronous standby" }
    return "synchronous standbys \(facts.synchronous)"
      + (facts.standbys.map { " (\($0) there)" }
        ?? " (not counted: GRANT pg_read_all_stats TO sallyport_verifier)")
  }

  /// One object.
  package var json: String {
    let database = object([
      ("timeline", quoted(facts.timeline)), ("synchronous", quoted(facts.synchronous)),
      ("standbys", facts.standbys.map { "\($0)" } ?? "null"), ("waiting", "\(facts.waiting)"),
      ("certificateSeconds", facts.certificate.map { "\($0)" } ?? "null"),
      ("losses", "\(facts.losses)"), ("lost", facts.losses > 0 ? quoted(facts.lost) : "null"),
    ])
    let warnings = warnings.map {
      object([("what", quoted($0.what)), ("text", quoted($0.text))])
    }
    return object([
      ("schema", "\(facts.schema)"), ("users", facts.users.map { "\($0)" } ?? "null"),
      ("database", database),
      ("verifiers", list(verifiers.map(\.json))),
      ("hosts", leftOut.contains(.hosts) ? "null" : list(hosts.map(\.json))),
      (
        "outcomes",
        leftOut.contains(.outcomes)
          ? "null" : object(outcomes.map { ($0.word, "\($0.count)") })
      ),
      ("warnings", list(warnings)),
    ])
  }
}

// MARK: problems

extension FleetStatus {
  /// A problem.
  struct Warning: Equatable {
    /// A word for programs.
    let what: String
    /// What it means, and what to do.
    let text: String

    init(_ what: String, _ text: String) { (self.what, self.text) = (what, text) }
  }

  var warnings: [Warning] {
    keeping + database + answering + clocks
      + hosts.filter(\.isGone).map { host in
        Warning(
          "host-unseen",
          "host \(host.name) was not seen since \(host.seen ?? "?"): if it is gone, "
            + "sallyport-verifier revoke \(host.name)")
      }
      + hosts.filter(\.kind.rests).map { host in
        Warning(
          "host-rests",
          "host \(host.name) \(host.right): it has no rights and holds no backup codes until "
            + "sallyport-verifier hosts accept \(host.name)")
      }
      + hosts.filter(\.isClosed).map { host in
        Warning(
          "host-closed",
          "host \(host.name) has brought too many wrong codes within a day: it gets codes accepted "
            + "only from places where their user logged in before "
            + "(sallyport-verifier hosts reopen \(host.name))")
      }
  }

  private var database: [Warning] {
    var found: [Warning] = []
    if facts.synchronous.isEmpty {
      found.append(
        Warning(
          "no-synchronous-standby",
          "no synchronous standby: saves can be lost with this server "
            + "(synchronous_standby_names)"))
    } else if facts.standbys == 0 {
      found.append(
        Warning(
          "standbys-away",
          "no synchronous standby is connected: all logins are refused"))
    } else if let there = facts.standbys, there <= needed {
      found.append(
        Warning(
          "one-standby",
          there == 1
            ? "only one synchronous standby is connected: if it stops, all logins are refused"
            : "\(there) synchronous standbys are connected, and each save waits for \(needed): if "
              + "one stops, all logins are refused"))
    }
    if !leftOut.isEmpty {
      let parts = leftOut.map(\.rawValue).joined(separator: ", ")
      found.append(
        Warning("left-out", "left out, since the database did not answer in time: \(parts)"))
    }
    if facts.waiting > 0 {
      found.append(
        Warning("saves-wait", "\(facts.waiting) saves wait for a synchronous standby"))
    }
    if facts.losses > 0 {
      found.append(
        Warning(
          "distrusted",
          "codes were invalidated \(facts.losses) times after data loss, last at \(facts.lost): "
            + "codes up to then count as used"))
    }
    return found
  }

  /// For how many standbys each save waits: `ANY 2 (a, b, c)`.
  private var needed: UInt64 {
    let words = facts.synchronous.prefix { $0 != "(" }.split(separator: " ")
    return words.last.flatMap { UInt64($0) } ?? 1
  }

  /// What would be lost, or end, by itself.
  private var keeping: [Warning] {
    var found: [Warning] = []
    if facts.schema < Schema.number {
      found.append(
        Warning(
          "schema-old",
          "the tables have schema \(facts.schema), this version has \(Schema.number): a verifier "
            + "of this version does not start on them (sallyport-verifier migrate)"))
    }
    if facts.eventDays ?? 0 < Self.fewDays {
      found.append(
        Warning(
          "event-days-end",
          "events have parts for \(facts.eventDays ?? 0) days to come: later ones cannot be "
            + "deleted by days (sallyport-verifier migrate, as the role that owns the tables)"))
    }
    if facts.isBound {
      found.append(
        Warning(
          "events-bounded",
          "a migrate is running, or was interrupted: 30 days after it all logins are refused, "
            + "until somebody runs sallyport-verifier migrate, as the role that owns the tables"))
    }
    if !hasCopy {
      found.append(
        Warning(
          "no-safe-copy",
          "no copy of the keys was checked: if the disk of this machine fails, everybody's "
            + "enrollment may be lost (sallyport-verifier key show > FILE, then key check FILE)"))
    }
    found += policies
    if let text = Self.ending(of: facts.certificate) {
      found.append(Warning("certificate-ends", text))
    }
    return found
  }

  /// By which policies they go.
  private var policies: [Warning] {
    let told = verifiers.filter(\.answers).compactMap { one in one.policy.map { (one.name, $0) } }
    var found: [Warning] = []
    if Set(told.map(\.1)).count > 1 {
      found.append(
        Warning(
          "policy-differs",
          "the verifiers go by different policies: "
            + told.map { "\($0) by \($1)" }.joined(separator: ", ")
            + " (see the log of each; sallyport-verifier config history)"))
    }
    let isOfFiles = told.isEmpty || told.contains { $1.hasPrefix("file:") }
    if isOfFiles, let policyFlaw { found.append(Warning("policy-broken", policyFlaw)) }
    return found
  }

  /// What to say of a certificate that expires in this number of seconds; nil: that is not soon.
  static func ending(of left: Int64?) -> String? {
    guard let left, left < certificateEnding else { return nil }
    return
      "a certificate between verifiers and the database expires in \(max(0, left) / 86_400) days: "
      + "from then on all logins are refused"
  }

  private var answering: [Warning] {
    let there = verifiers.filter(\.answers)
    var found: [Warning] = []
    if there.isEmpty {
      found.append(
        Warning(
          "no-verifier",
          "no verifier is up: hosts accept only backup codes (systemctl status "
            + "sallyport-verifier, on each)"))
    } else if there.count == 1 {
      found.append(
        Warning(
          "one-verifier",
          "only one verifier is up: if it stops, hosts accept only backup codes"))
    }
    for one in verifiers where !one.answers {
      found.append(
        Warning(
          "verifier-silent",
          "verifier \(one.name) is silent since \(one.heard)"
            + (there.isEmpty ? "" : "; the others answer")))
    }
    for one in there where !one.hasLooked {
      found.append(
        Warning(
          "server-not-looked-at",
          "verifier \(one.name) has not yet verified this database server: it refuses all logins"))
    }
    return found
  }

  /// By what each of them makes of its own.
  private var clocks: [Warning] {
    let there = verifiers.filter(\.answers)
    let known = there.compactMap { one in one.offset.map { (one.name, $0) } }
    let verdicts = known.map { name, mine in
      let others = known.filter { $0.0 != name }.map(\.1)
      return (name: name, mine: mine, verdict: ClockWatch.verdict(mine, others))
    }
    let own = verdicts.filter { $0.verdict == .databaseIsOff }
    let isSplit = ClockWatch.agrees(known.map(\.1))
    let database = own.first.map { first in
      Warning(
        isSplit ? "clocks-differ" : "database-clock",
        "the database's clock is \(ClockWatch.told(-first.mine)) those of the verifiers "
          + "\(own.map(\.name).joined(separator: ", ")), which agree and use their own"
          + (isSplit
            ? "; others agree with the database, and use its clock: set those that are wrong "
              + "(timedatectl on each, and at the database)" : ": set it (timedatectl there)"))
    }
    return [database].compactMap { $0 }
      + verdicts.compactMap { one in
        switch one.verdict {
        case .fine, .databaseIsOff: nil
        case .off:
          Warning(
            "verifier-clock",
            "the clock of verifier \(one.name) is \(ClockWatch.told(one.mine)) the database's: "
              + "from 30 s on it refuses all logins, unless another verifier's agrees with it "
              + "(timedatectl, here and there)")
        case .aside:
          Warning(
            "verifier-clock",
            "verifier \(one.name) refuses all logins: its clock is \(ClockWatch.told(one.mine)) "
              + "the database's, and no other verifier's agrees with it"
              + (known.count == 1 ? "; there is no other" : "")
              + ": set the one that is wrong (timedatectl on \(one.name), and at the database)")
        }
      }
  }
}

extension FleetStatus.Verifier {
  fileprivate var line: String {
    "verifier: \(name): \(answers ? "up" : "SILENT"), \(saves) saves by \(connections) "
      + "connections, last heard \(heard)"
      + (policy.map { ", policy \($0)" } ?? "")
  }

  fileprivate var json: String {
    object([
      ("name", quoted(name)), ("isThere", "\(answers)"), ("heard", quoted(heard)),
      ("silentSeconds", "\(silent)"), ("saves", "\(saves)"), ("connections", "\(connections)"),
      ("clockOffsetSeconds", offset.map { "\(Double($0) / 1000)" } ?? "null"),
      ("hasLooked", "\(hasLooked)"), ("policy", policy.map { quoted($0) } ?? "null"),
    ])
  }
}

extension HostTable.Row {
  fileprivate var isGone: Bool { unseen.map { $0 > FleetStatus.unseen } ?? false }

  fileprivate var line: String {
    "host: \(name), \(right)" + (seen.map { ", seen \($0)" } ?? ", never seen")
      + (isClosed ? ", CLOSED" : "")
  }

  fileprivate var json: String {
    object([
      ("name", quoted(name)), ("rights", list((rights?.words ?? []).map { quoted($0) })),
      ("seen", seen.map { quoted($0) } ?? "null"),
      ("unseenSeconds", unseen.map { "\($0)" } ?? "null"), ("rests", "\(kind.rests)"),
      ("closed", "\(isClosed)"),
    ])
  }
}

// MARK: JSON

private func list(_ values: [String]) -> String { "[\(values.joined(separator: ", "))]" }

private func object(_ fields: [(String, String)]) -> String {
  "{\(fields.map { "\(quoted($0.0)): \($0.1)" }.joined(separator: ", "))}"
}
