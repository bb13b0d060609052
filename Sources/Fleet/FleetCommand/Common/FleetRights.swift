import FleetProtocol
import FleetTransport
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

/// What the verifiers let this host do.
struct ToldRights {
  let host: String
  let rights: HostRights
  /// Of each right, how often today.
  let used: [UInt32]
  let now: UnixTime

  /// Whether it was refused for this right; else for something else.
  func isRefused(_ right: HostRight) -> Bool { !rights.allows(right, at: now) || isUsedUp(right) }

  private func isUsedUp(_ right: HostRight) -> Bool {
    let one = rights[right]
    return one.daily > 0 && used[right.rawValue - 1] >= one.daily
  }

  /// In a sentence about this host.
  fileprivate func text(of right: HostRight) -> String {
    rights.allows(right, at: now)
      ? "has used up its right \(right.word) (\(rights[right].daily) a day)"
      : ToldRights.text(without: right)
  }

  fileprivate static func text(without right: HostRight) -> String {
    "does not have the right \(right.word)"
  }

  fileprivate func hint(for right: HostRight) -> String {
    ToldRights.hint(
      for: right, host,
      rights.allows(right, at: now) ? " --for 1h  # on a verifier: 100 more" : "  # on a verifier")
  }

  fileprivate static func hint(
    for right: HostRight, _ host: String, _ end: String = "  # on a verifier"
  ) -> String {
    "sallyport-verifier hosts allow \(printable(host.utf8, limit: 253)) \(right.word)\(end)"
  }

  // MARK: for `fleet status`

  /// Those that it has now, by their words.
  var daily: [String: UInt32] {
    let held = HostRight.allCases.filter { rights.allows($0, at: now) }
    return Dictionary(uniqueKeysWithValues: held.map { ($0.word, rights[$0].daily) })
  }

  /// One line for each right that it has.
  var lines: [String] {
    let lines = HostRight.allCases.compactMap { right -> String? in
      let one = rights[right]
      guard one.allows(at: now) else { return nil }
      let more =
        one.isWider(at: now)
        ? ", and \(one.more) up to \(fact(one.until) ?? "\(one.until.seconds)")" : ""
      return "  \(right.word): \(used[right.rawValue - 1]) of \(one.daily) today\(more)"
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
  func rights() -> ToldRights? {
    guard let (file, identity) = try? host(), let now = try? Clock.now(),
      let body = RightsRequest().encoded(),
      let answer = try? verifiers(file, identity).manage(body),
      case .told(let rights, let used) = RightsAnswer.decode(answer)
    else { return nil }
    return ToldRights(host: file.host, rights: rights, used: used, now: now)
  }

  /// Whether it is worth asking for what needs this right: this host had rights when it joined, or
  /// a verifier says that it has this one now.
  func mayHave(_ right: HostRight, _ file: FleetFile) -> Bool {
    if file.enrolls { return true }
    guard let told = rights() else { return false }
    return told.rights.allows(right, at: told.now)
  }

  /// Why the verifiers refuse what needs this right.
  func missing(_ right: HostRight) -> MissingRight {
    let name = (try? membership())?.host
    return MissingRight(right, rights(), host: name ?? "NAME")
  }
}
