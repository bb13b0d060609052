import OneTimePassword
package import SallyportCore
import SallyportSupport

/// A refusal that `decide` returned, and when the next try is possible.
package struct CodeRefused: Equatable {
  package let refusal: Refusal
  /// If throttled: seconds until the next code is checked; nil for never.
  package let wait: UInt64?
  /// If wrong: by how many seconds a clock is ahead, or behind if negative, that would show it.
  package var clockOffset: Int64?
  /// Whether that is a token's, which nobody can set.
  package var isToken = false
  /// Whose app computes the code, and ignores what it was told.
  var ignored: IgnoredByApp?

  package init(
    refusal: Refusal, wait: UInt64?, clockOffset: Int64? = nil, isToken: Bool = false
  ) {
    (self.refusal, self.wait, self.clockOffset) = (refusal, wait, clockOffset)
    self.isToken = isToken
  }

  init(
    refusal: Refusal, wait: UInt64?, clockOffset: Int64? = nil, isToken: Bool = false,
    ignored: IgnoredByApp?
  ) {
    self.init(refusal: refusal, wait: wait, clockOffset: clockOffset, isToken: isToken)
    self.ignored = ignored
  }

  /// The text, and the commands that follow.
  fileprivate func message(at invocation: Invocation) -> Message {
    if let ignored { return ignored.message(at: invocation) }
    switch refusal {
    case .malformed(let malformation): return Message(malformation.text, .refused)
    case .wrongCode:
      guard let clockOffset else { return Message("wrong code", .refused) }
      let text = "wrong code; a clock that is \(offText(clockOffset)) shows it now"
      guard isToken else { return Message("\(text): set the phone's", .refused) }
      return Message(
        text, .refused,
        hints: [invocation.command("resync", remark: "with two codes, sets what a token's is")])
    case .replayed:
      return Message("that code has already been used: wait for the next one", .refused)
    case .throttled:
      let next = wait.map { "try again in \(durationText($0))" }
      return Message(
        "too many wrong codes; \(next ?? "no more are accepted")", .refused,
        hints: [invocation.command("unlock", remark: "allows the next try now")])
    case .mustEnroll:
      return Message(
        "that pass is right, and was not used: it is for a login that ends in enrolling", .refused)
    case .clock(let until):
      let time = CalendarDate(until, inUTC: true)?.internetText ?? "\(until.seconds)"
      return Message(
        "the last accepted code is ahead of the clock; "
          + "codes are refused until \(time), backup codes work", .refused,
        hints: [
          "date  # the clock of this machine",
          invocation.command("resync", remark: "if the clock is now correct"),
        ])
    }
  }
}

extension CommandError {
  /// The code was checked and refused.
  package static func code(_ rejection: CodeRefused) -> CommandError {
    CommandError(.code(rejection)) { rejection.message(at: $0) }
  }
}

extension Malformation {
  /// The text for the user who typed it.
  fileprivate var text: String {
    switch self {
    case .empty: "no code given"
    case .tooLong: "too long for a code"
    case .length: "wrong number of digits"
    case .characters, .sshdDummy, .again: "neither a code nor a backup code"
    }
  }
}
