import OneTimePassword
package import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// What a row of the table `event` says of a save: what was asked, and the outcome.
package struct Event: Sendable {
  /// The host's name.
  package let host: [UInt8]
  /// The user's name as it was typed.
  package let name: [UInt8]
  private let service: [UInt8]
  /// Where the login comes from, as text.
  let address: [UInt8]
  /// The real uid of the caller, in a local login.
  let caller: UInt32?
  /// What a save changes, where it is no login.
  private let act: Act.Verb?

  /// Of a login on a host.
  init(_ host: [UInt8], _ question: LoginQuestion) {
    let address: [UInt8]
    switch question.origin {
    case .address(let stated): address = Array(Addresses.text(stated).utf8)
    case .local: address = bytes(of: question.isOwn ? "local" : "local(another user)")
    case .unknown: address = Event.nowhere
    }
    (self.host, name, self.address, caller) = (host, question.name, address, question.caller)
    if case .amend(let change, _) = question.verb { act = Act.told(change).verb } else { act = nil }
    service = escaped(question.service, limit: 255)
  }

  /// Of something else that a host asks, or of a command on the verifier.
  package init(
    of service: StaticString = "", on host: [UInt8], name: [UInt8] = [], act: Act.Verb? = nil
  ) {
    (self.host, self.name, self.service) = (host, name, bytes(of: service))
    self.act = act
    (address, caller) = (Event.nowhere, nil)
  }

  private static let nowhere = bytes(of: "unknown")

  /// $5 to $13 of a save. `verdict`: what the question came to; nil for other changes of the state,
  /// which are no event unless they are an act. A name that nobody has may be anything that was
  /// typed, a password too. `isWritten`: whether there is to be a row.
  func values(
    _ verdict: (any EventWord)?, _ before: LoginState?, _ after: LoginState?,
    isWritten: Bool = true
  ) -> [Value] {
    let word = verdict?.word ?? act.map { bytes(of: "act-") + Array($0.rawValue.utf8) }
    let used = before.flatMap { before in after.flatMap { Use(before, $0) } }
    let isNobody = verdict as? Outcome == .refused(.unknownUser)
    return [
      .text(host), .bytes(isNobody ? [] : name), .text(service), .text(address),
      caller.map { .number(UInt64($0)) } ?? .null,
      word.map { .text($0) } ?? .null, used.map { .text($0.what) } ?? .null,
      used.map { .number($0.position) } ?? .null,
      .text([UInt8(ascii: word == nil || !isWritten ? "f" : "t")]),
    ]
  }

  /// What a save has used up: an authenticator's position, or a backup code's place in its set.
  private struct Use {
    let what: [UInt8]
    let position: UInt64

    init?(_ before: LoginState, _ after: LoginState) {
      for one in after.authenticators {
        guard let last = one.lastAccepted,
          let old = before.authenticators.first(where: { $0.id == one.id }),
          old.lastAccepted != last
        else { continue }
        (what, position) = (hexadecimal(one.id), last)
        return
      }
      guard let codes = after.backupCodes, let old = before.backupCodes else { return nil }
      let used = codes.used & ~old.used
      guard codes.setID == old.setID, used != 0 else { return nil }
      (what, position) = (hexadecimal(codes.setID), UInt64(used.trailingZeroBitCount))
    }
  }
}

/// What a change of the state came to, as an event says it.
protocol EventWord {
  var word: [UInt8] { get }
  /// Whether it costs a host nothing to bring one more of these.
  var isFree: Bool { get }
}

extension EventWord {
  var isFree: Bool { false }
}

extension Outcome: EventWord {
  var word: [UInt8] {
    switch self {
    case .accepted: bytes(of: "accepted")
    // Or a pass: what was typed is nobody's code, and costs nothing.
    case .refused(.response(.wrongCode(nil), _)): bytes(of: "wrong-backup-code")
    case .refused(let reason): bytes(of: reason.name)
    }
  }

  var isFree: Bool {
    switch self {
    case .accepted, .refused(.response(.wrongCode(.some), _)): false
    case .refused: true
    }
  }
}
