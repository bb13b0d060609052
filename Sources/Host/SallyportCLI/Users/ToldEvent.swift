import SallyportAdministration
import SallyportCore
import SallyportSupport

extension FleetLog.Event {
  /// What a backup code came to that was used on a host that could ask no verifier.
  private static let away = ["used-away", "used-before"]

  private var word: String { printable(outcome, limit: 64) }

  package var isRefusal: Bool {
    word != "accepted" && word != "used-away" && !word.hasPrefix(Self.beforeAct)
  }

  private static let beforeAct = "act-"

  /// nil where it is a login. Who asked on that host, its own log says.
  fileprivate var act: ToldAct? {
    guard word.hasPrefix(Self.beforeAct) else { return nil }
    let facts = [
      Act.Fact("act", word.dropFirst(Self.beforeAct.count).utf8),
      Act.Fact("by", Array("host(".utf8) + host + Array(")".utf8)), Act.Fact("for", user),
      Act.Fact("via", Act.Way.verifier.rawValue.utf8),
      Act.Fact("stage", Act.Stage.done.rawValue.utf8),
    ]
    return ActRecord(time, facts).map { ToldAct(record: $0) }
  }

  /// `alice at sshd on web2 from 192.0.2.7: a code was accepted`
  var text: String {
    let place =
      switch printable(address, limit: 64) {
      case "unknown": ""
      case "local": ", on that machine"
      case "local(another user)": ", on that machine, by another user"
      case let place: " from \(place)"
      }
    let result =
      switch word {
      case "accepted": "accepted"
      case "used-away": "a backup code had been used while no verifier could be asked"
      case "used-before": "a backup code had been used twice, once while no verifier could be asked"
      case let reason: "refused (\(reason))"
      }
    let who = user.isEmpty ? "an unknown name" : shown(user)
    return "\(who) at \(shown(service)) on \(shown(host))\(place): \(result)"
  }

  var facts: ToldLogin.Facts {
    let isAway = Self.away.contains(word)
    return ToldLogin.Facts(
      time: time.internetText, user: shown(user), service: shown(service),
      result: isAway || !isRefusal ? word : "refused", authenticator: nil,
      reason: isAway || !isRefusal ? nil : word, origin: shown(address), host: shown(host),
      trusted: true)
  }

  private func shown(_ value: [UInt8]) -> String { printable(value, limit: 255) }
}

extension FleetLog {
  static let cutText =
    "the fleet has more: only the newest \(most) logins and \(most) refusals are shown"

  /// The oldest first: but for those of this machine, which has more of them in its own file.
  var acts: [ToldAct] {
    events.reversed().filter { $0.host != Array(host.utf8) }.compactMap(\.act)
  }

  /// One of both, where a line of this machine and an event are of the same login: the line, which
  /// has the authenticator's name; but the event where anybody can have written the line. A refusal
  /// that reached no verifier has no event, and a line that is gone leaves its event.
  func merged(with logins: [ToldLogin]) -> (logins: [ToldLogin], events: [Event]) {
    var open: [[UInt8]: [Int]] = [:]
    for (index, login) in logins.enumerated() {
      guard let key = login.keyOfEvent else { continue }
      open[key, default: []].append(index)
    }
    var doubled: Set<Int> = []
    let others = events.filter { event in
      if event.act != nil { return false }
      guard event.host == Array(host.utf8) else { return true }
      // The nearest in time: clocks differ, and codes are good for about as long.
      let own = (open[event.key] ?? []).min {
        logins[$0].distance(to: event) < logins[$1].distance(to: event)
      }
      guard let own, logins[own].distance(to: event) <= FleetLog.near else { return true }
      open[event.key]?.removeAll { $0 == own }
      if logins[own].isTrusted { return false }
      doubled.insert(own)
      return true
    }
    return (logins.indices.filter { !doubled.contains($0) }.map { logins[$0] }, others)
  }

  /// Seconds.
  private static let near: UInt64 = 30
}

extension FleetLog.Event {
  /// What a line of the same login has the same. Nobody's name is not saved.
  fileprivate var key: [UInt8] {
    (isRefusal ? [1] : [0]) + service + [0] + user
  }
}

extension ToldLogin {
  /// nil: of what reaches no verifier.
  fileprivate var keyOfEvent: [UInt8]? {
    let line = login.line
    switch line.result {
    case .notAsked, .enrolled: return nil
    case .code, .backupCode, .pass: return [0] + line.service + [0] + line.user
    case .refused(let reason):
      let isNobody = reason == Array("unknown-user".utf8)
      return [1] + line.service + [0] + (isNobody ? [] : line.user)
    }
  }

  fileprivate func distance(to event: FleetLog.Event) -> UInt64 {
    let (seconds, isFar) = login.time.seconds.subtractingReportingOverflow(event.time.seconds)
    return isFar ? .max : seconds.magnitude
  }
}
