import SallyportAdministration
import SallyportCore
import SallyportSupport

extension FoundLogins {
  var told: [ToldLogin] {
    logins.enumerated().compactMap { place, login in
      if case .enrolled = login.line.result { return nil }
      return ToldLogin(login: login, place: place, isOfRoot: isOfRoot)
    }
  }

  /// What logins changed of what is enrolled, with their place among the logins. From a file, which
  /// anybody may have written, none.
  var acts: [(place: Int, act: ToldAct)] {
    guard isOfRoot else { return [] }
    return logins.enumerated().compactMap { place, login in
      guard case .enrolled(let change, let authenticators) = login.line.result else { return nil }
      let facts =
        [Act.Fact("act", (change == .added ? "add" : "enroll").utf8)]
        + [Act.Fact("by", login.line.user), Act.Fact("for", login.line.user)]
        + authenticators.map { Act.Fact("authenticator", $0) }
        + (change == .replaced ? [Act.Fact("replaces", "all".utf8)] : [])
        + [Act.Fact("service", login.line.service)]
        + (login.line.origin.map { [Act.Fact("origin", $0)] } ?? [])
        + [Act.Fact("via", "login".utf8), Act.Fact("stage", "done".utf8)]
      return ActRecord(login.time, facts).map { (place, ToldAct(record: $0)) }
    }
  }
}

/// A login in words, and in JSON.
struct ToldLogin {
  let login: FoundLogins.Login
  /// Among those that were found.
  let place: Int
  /// Whether nobody but root can have written it.
  let isOfRoot: Bool
  /// Whether a known program of root's has, for certain.
  var isTrusted: Bool { login.isTrusted }

  struct Facts: Encodable {
    @OrNull var time: String?
    let user, service, result: String
    /// Of a code.
    @OrNull var authenticator: String?
    /// Of a refusal.
    @OrNull var reason: String?
    @OrNull var origin: String?
    /// Of the fleet, which its verifiers have told; null: of this machine's own log.
    @OrNull var host: String?
    let trusted: Bool
  }

  private var line: LoginLine { login.line }

  var isRefusal: Bool { if case .refused = line.result { true } else { false } }

  var facts: Facts {
    var (result, authenticator, reason): (String, [UInt8]?, [UInt8]?) = ("", nil, nil)
    switch line.result {
    case .code(let name): (result, authenticator) = ("code", name)
    case .backupCode: result = "backup-code"
    case .pass: result = "pass"
    case .refused(let why): (result, reason) = ("refused", why)
    case .notAsked: result = "not-asked"
    case .enrolled: result = "enrolled"
    }
    return Facts(
      time: login.time.internetText, user: shown(line.user), service: shown(line.service),
      result: result, authenticator: authenticator.map(shown), reason: reason.map(shown),
      origin: line.origin.map(shown), host: nil, trusted: isTrusted)
  }

  /// `alice at sshd from 192.0.2.7: a code of "phone" was accepted`
  var text: String {
    let place =
      switch line.origin.map({ shown($0) }) {
      case nil, "unknown": ""
      case "local": ", on this machine"
      case "local(another-user)": ", on this machine, by another user"
      case let place?: " from \(place)"
      }
    let doubt = isOfRoot && !isTrusted ? ", as a program said that had ended" : ""
    return "\(shown(line.user)) at \(shown(line.service))\(place): \(result)\(doubt)"
  }

  private var result: String {
    switch line.result {
    case .code(let name): "a code of \"\(shown(name))\" was accepted"
    case .backupCode: "a backup code was accepted"
    case .pass: "a pass was accepted"
    case .refused(let reason): "refused (\(shown(reason)))"
    case .notAsked: "not asked, since the place is remembered"
    case .enrolled: "enrolled"
    }
  }

  private func shown(_ value: [UInt8]) -> String { printable(value, limit: 255) }
}
