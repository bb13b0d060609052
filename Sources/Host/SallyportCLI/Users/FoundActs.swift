import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// The acts that a store's file has, in order of time.
struct FoundActs {
  private var records: [ActRecord] = []
  /// What could not be read.
  private(set) var warnings: [String] = []

  /// More lines are not kept in memory, the oldest first.
  private static let most = 200_000

  /// Of these users, or of everybody.
  init(in store: Store, since start: UnixTime, of names: [UserName]?) throws(CommandError) {
    let first = start.internetText.map { String($0.prefix(7)) } ?? ""
    let fields = names.map { $0.map { Array(Act.field($0.bytes).utf8) } }
    let months = try storing { () throws(StoreTrouble) in try store.monthsOfActs() }
    for month in months where month >= first {
      do throws(StoreTrouble) {
        guard let found = try store.acts(of: month) else { continue }
        take(found, since: start) { $0.concerns(fields) }
      } catch {
        warnings.append(Message(error, at: Invocation(verb: "log", store: nil)).text)
      }
    }
    // Of the same second the file has the order.
    let ordered = records.enumerated().sorted {
      ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
    }
    records = ordered.map(\.element)
  }

  /// What somebody changed himself counts from the beginning of the month, as the bound does.
  private mutating func take(
    _ found: StoredActs, since start: UnixTime, where isMeant: (ActRecord) -> Bool
  ) {
    var (broken, own): (Int, [[UInt8]: Int]) = (0, [:])
    for line in found.lines {
      guard let record = ActRecord(line: line) else {
        broken += 1
        continue
      }
      guard isMeant(record) else { continue }
      if let user = record.ownOfSession { own[user, default: 0] += 1 }
      if record.time >= start { records.append(record) }
    }
    if records.count > FoundActs.most {
      records.removeFirst(records.count - FoundActs.most)
      warnings.append("not all acts are shown: use --since, or name a user")
    }
    for (user, count) in own.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) })
    where count >= Store.mostOwnActs {
      warnings.append(
        "acts/\(found.month): only the first \(Store.mostOwnActs / 2) changes that "
          + "\(printable(user, limit: 64)) made himself are kept; the log of the system has the "
          + "rest"
      )
    }
    if broken > 0 {
      warnings.append("acts/\(found.month): \(counted(broken, "line")) cannot be read")
    }
    if found.isCutShort { warnings.append("acts/\(found.month): the last line was cut short") }
    if found.isTooLong { warnings.append("acts/\(found.month): only the newest lines were read") }
  }

  /// One for each change. What began and has no end is told at its beginning; an end is that of the
  /// last one that began like it.
  var acts: [ToldAct] {
    var (told, begun): ([ToldAct?], [[Act.Fact]: [Int]]) = ([], [:])
    for record in records {
      if record.stage == .will {
        begun[record.common, default: []].append(told.count)
      } else if let place = begun[record.common]?.popLast() {
        told[place] = nil
      }
      told.append(ToldAct(record: record))
    }
    return told.compactMap { $0 }
  }
}

extension ActRecord {
  /// Who changed what is his own, in a session.
  fileprivate var ownOfSession: [UInt8]? {
    self["via"] == Array("session".utf8) && self["by"] == self["for"] ? self["for"] : nil
  }

  /// Names as a line has them, where a long one is cut.
  fileprivate func concerns(_ fields: [[UInt8]]?) -> Bool {
    guard let fields else { return true }
    return ["for", "from"].contains { key in
      all(key).contains { fields.contains(Array(Act.field($0).utf8)) }
    }
  }
}

/// An act in words, and in JSON.
struct ToldAct {
  let record: ActRecord

  struct Facts: Encodable {
    struct Fact: Encodable { let key, value: String }

    @OrNull var time: String?
    let act, by: String
    @OrNull var loginuid: String?
    /// Whom SUDO_USER or DOAS_USER claimed, where the kernel knew nobody.
    @OrNull var claimed: String?
    @OrNull var user: String?
    let facts: [Fact]
    @OrNull var via: String?
    /// `will`: it may have been done, as its end was not seen.
    let stage: String

    enum CodingKeys: String, CodingKey {
      case time, act, by, loginuid, claimed
      case user = "for"
      case facts, via, stage
    }
  }

  var facts: Facts {
    let fixed = ["act", "by", "loginuid", "claimed", "for", "via", "stage"]
    return Facts(
      time: record.time.internetText, act: value("act") ?? "", by: value("by") ?? "",
      loginuid: value("loginuid"), claimed: value("claimed"), user: value("for"),
      facts: record.fields.filter { !fixed.contains($0.key) }.map {
        Facts.Fact(key: $0.key, value: printable($0.value, limit: 255))
      }, via: value("via"), stage: record.stage.rawValue)
  }

  /// Escaped, to be shown.
  fileprivate func value(_ key: String) -> String? {
    record[key].map { printable($0, limit: 255) }
  }

  /// `root (carol) gave alice a pass, for 1 login, by command`
  var text: String {
    let (done, undone) = phrase
    let what =
      switch record.stage {
      case .done: done
      case .failed: "tried to \(undone), which failed"
      case .will: "may have \(done): its end was not seen"
      }
    let way = value("via").map { " [\($0)]" } ?? ""
    return "\(who) \(what)\(details)\(way)"
  }

  /// `root (carol)`; who the environment claims is told as a claim.
  private var who: String {
    let by = (value("by") ?? "").split(separator: "(", maxSplits: 1)
    let own = by.count == 2 ? "\(by[0]) (\(by[1])" : by.first.map(String.init) ?? "somebody"
    return own + (value("claimed").map { " (perhaps \($0))" } ?? "")
  }

  fileprivate var whom: String { value("for") ?? "somebody" }

  /// Verifiers do not save them.
  fileprivate var names: String {
    let names = record.all("authenticator").map { "\"\(printable($0, limit: 64))\"" }
    return names.isEmpty ? "an authenticator" : names.joined(separator: ", ")
  }

  /// What was done, and what was to be done.
  private var phrase: (done: String, undone: String) {
    guard let verb = value("act").flatMap(Act.Verb.init(rawValue:)) else {
      // Of a later version.
      let what = "\(value("act") ?? "") \(value("for") ?? "")"
      return ("did: \(what)", "do: \(what)")
    }
    return verb.phrase(of: self)
  }

  fileprivate var tokens: String {
    let serials = record.all("token").map { printable($0, limit: 64) }
    return serials.isEmpty ? "tokens" : "the token \(serials.joined(separator: ", "))"
  }

  fileprivate var services: String {
    record.all("service").map { printable($0, limit: 64) }.joined(separator: ", ")
  }

  /// The facts that the phrase has not told: `, uses 1, until 2026-11-28T11:00:00Z`.
  private var details: String {
    let told = [
      "act", "by", "loginuid", "claimed", "for", "via", "stage", "authenticator", "new", "service",
      "file", "replaces", "token",
    ]
    let rest = record.fields.filter { !told.contains($0.key) }
    return rest.map { ", \($0.key) \(printable($0.value, limit: 255))" }.joined()
  }
}

extension Act.Verb {
  /// What was done, and what was to be done.
  fileprivate func phrase(of act: ToldAct) -> (done: String, undone: String) {
    let (done, undone) = words
    let rest = object(in: act)
    return ("\(done) \(rest)", "\(undone) \(rest)")
  }

  private func object(in act: ToldAct) -> String {
    let (whom, names) = (act.whom, act.names)
    return switch self {
    case .enroll where act.value("replaces") != nil:
      "\(whom) with \(names), by a pass, in place of all before"
    case .import where act.value("for") == nil: "tokens"
    case .enroll, .import: "\(whom) with \(names)"
    case .unenroll: "all that \(whom) had enrolled"
    case .add: "\(names) for \(whom)"
    case .remove, .resync: "\(names) of \(whom)"
    case .rename: "\(names) of \(whom)" + (act.value("new").map { " to \"\($0)\"" } ?? "")
    case .unlock, .exempt, .block, .unblock: whom
    case .forget: "the remembered places of \(whom)"
    case .require: "\(whom) to enroll"
    case .level: "it to the policy whether \(whom) must enroll"
    case .pass: "\(whom) a pass"
    case .restore: "what a pass had replaced of \(whom)"
    case .revoke: "the passes of \(whom)"
    case .backupCodes: "new backup codes for \(whom)"
    case .adopt: "\(whom) the enrollment of another uid or name"
    case .tokenAssign: "\(act.tokens) to \(whom)"
    case .tokenUnassign: "\(act.tokens) back from \(whom)"
    case .tokenForget: act.tokens
    case .prepare: "the store"
    case .newMachine: "a copied store for this machine's"
    case .empty: "all enrollments from the store"
    case .pamEnable, .pamDisable: "the code in \(act.services)"
    case .pamConfirm, .pamRevert: "the change of \(act.services)"
    case .configEdit, .configInstall: "the policy \(act.value("file") ?? "")"
    case .fleetJoin: "this machine a host of a fleet"
    case .fleetLeave: "the fleet"
    case .fleetPush: "\(whom) to the fleet"
    case .fleetTake: "\(whom), with the secrets, from the fleet"
    case .fleetFetch: "the secrets of \(whom) to a host"
    }
  }

  private var words: (done: String, undone: String) {
    switch self {
    case .enroll: ("enrolled", "enroll")
    case .import: ("imported", "import")
    case .unenroll, .remove, .empty: ("removed", "remove")
    case .add: ("added", "add")
    case .resync: ("synchronized", "synchronize")
    case .rename: ("renamed", "rename")
    case .unlock: ("unlocked", "unlock")
    case .exempt: ("exempted", "exempt")
    case .block: ("blocked", "block")
    case .unblock: ("unblocked", "unblock")
    case .forget: ("forgot", "forget")
    case .require: ("required", "require")
    case .level: ("left", "leave")
    case .pass, .adopt, .fleetFetch: ("gave", "give")
    case .restore: ("restored", "restore")
    case .revoke: ("ended", "end")
    case .backupCodes, .fleetJoin: ("made", "make")
    case .prepare: ("prepared", "prepare")
    case .newMachine, .tokenUnassign: ("took", "take")
    case .tokenAssign: ("gave", "give")
    case .tokenForget: ("forgot", "forget")
    case .pamEnable: ("turned on", "turn on")
    case .pamDisable: ("turned off", "turn off")
    case .pamConfirm: ("confirmed", "confirm")
    case .pamRevert: ("took back", "take back")
    case .configEdit, .configInstall: ("installed", "install")
    case .fleetLeave: ("left", "leave")
    case .fleetPush: ("moved", "move")
    case .fleetTake: ("took", "take")
    }
  }
}
