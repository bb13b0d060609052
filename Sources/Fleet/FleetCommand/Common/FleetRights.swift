import FleetProtocol
import FleetTransport
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

/// What the verifiers let this host do now.
struct ToldRights {
  let host: String
  let rights: HostRights
  /// Of each right.
  let used: [HostRights.Use]
  /// Whether codes are accepted here only from known places, after too many wrong ones.
  let isClosed: Bool

  func holds(_ right: HostRight) -> Bool { !rights[right].isNone }

  /// How often more it can be used now.
  func left(of right: HostRight) -> UInt64 {
    let (one, used) = (rights[right], used[right.rawValue - 1])
    let more = used.others == 0 ? UInt64(one.more) - UInt64(min(used.more, one.more)) : 0
    return UInt64(one.daily) - UInt64(min(used.daily, one.daily)) + more
  }

  /// In a sentence about this host.
  fileprivate func text(of right: HostRight) -> String {
    if !holds(right) { return ToldRights.text(without: right) }
    if left(of: right) > 0 { return "was refused its right \(right.word) just now" }
    let (one, others) = (rights[right], used[right.rawValue - 1].others)
    if one.daily == 0, others > 0 {
      return "has its right \(right.word) for \(counted(Int(others), "other user")) alone"
    }
    let numbers = [
      one.daily > 0 ? "\(one.daily) a day" : nil,
      one.more > 0
        ? "\(one.more) up to \(end(one))" + (others > 0 ? " for others" : "") : nil,
    ].compactMap { $0 }.joined(separator: ", ")
    return "has used up its right \(right.word) (\(numbers))"
  }

  fileprivate static func text(without right: HostRight) -> String {
    "does not have the right \(right.word)"
  }

  fileprivate func hint(for right: HostRight) -> String {
    ToldRights.hint(
      for: right, host, holds(right) ? " --for 1h  # on a verifier: 100 more" : "  # on a verifier")
  }

  fileprivate static func hint(
    for right: HostRight, _ host: String, _ end: String = "  # on a verifier"
  ) -> String {
    "sallyport-verifier hosts allow \(printable(host.utf8, limit: 253)) \(right.word)\(end)"
  }

  private func end(_ one: HostRights.Allowance) -> String {
    fact(one.until) ?? "\(one.until.seconds)"
  }

  // MARK: for `fleet status`

  /// What it means that it is closed, and what to do.
  var closing: String {
    "too many wrong codes were typed here within a day: codes are accepted only from places where "
      + "their user logged in before (on a verifier: sallyport-verifier hosts reopen "
      + "\(printable(host.utf8, limit: 253)))"
  }

  /// Those that it has now, by their words.
  var daily: [String: UInt32] {
    let held = HostRight.allCases.filter(holds)
    return Dictionary(uniqueKeysWithValues: held.map { ($0.word, rights[$0].daily) })
  }

  /// One line for each right that it has.
  var lines: [String] {
    let lines = HostRight.allCases.filter(holds).map { right in
      let (one, used) = (rights[right], used[right.rawValue - 1])
      var more = one.more > 0 ? ", and \(used.more) of \(one.more) up to \(end(one))" : ""
      if used.others > 0 { more += " for \(counted(Int(used.others), "user")) alone" }
      return "  \(right.word): \(used.daily) of \(one.daily) today\(more)"
    }
    return lines.isEmpty ? ["  none: it asks about its own logins"] : lines
  }
}

/// A right that this host lacks, or has used up, as two parts of a message.
struct MissingRight {
  let text: String
  let hint: String

  /// `told`: nil where no verifier said it.
  init(_ right: HostRight, _ told: ToldRights?, host: String) {
    text = told.map { $0.text(of: right) } ?? ToldRights.text(without: right)
    hint = told.map { $0.hint(for: right) } ?? ToldRights.hint(for: right, host)
  }
}

extension FleetEnvironment {
  /// nil where no verifier says it; one of the former version does not.
  func rights(for name: UserName? = nil) -> ToldRights? {
    guard let (file, identity) = try? host(), let body = RightsRequest(for: name).encoded(),
      let answer = try? verifiers(file, identity).manage(body),
      case .told(let rights, let used, let isClosed) = RightsAnswer.decode(answer)
    else { return nil }
    return ToldRights(host: file.host, rights: rights, used: used, isClosed: isClosed)
  }

  /// Whether it is worth asking for what needs this right: this host had rights when it joined, or
  /// a verifier says that it has this one now.
  func mayHave(_ right: HostRight, _ file: FleetFile) -> Bool {
    file.enrolls || rights()?.holds(right) == true
  }

  /// Why the verifiers refuse what needs this right.
  func missing(_ right: HostRight, _ file: FleetFile, for name: UserName? = nil) -> MissingRight {
    MissingRight(right, rights(for: name), host: file.host)
  }
}
