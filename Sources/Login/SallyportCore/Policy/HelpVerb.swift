/// What members of the helpdesk may do for somebody, without root. Numbered as in a session's
/// frames.
package enum HelpVerb: UInt8, CaseIterable, Sendable {
  case status = 1
  case unlock, pass

  /// As in `helpdesk_may`, and as the verb of the command.
  package var name: StaticString {
    switch self {
    case .status: "status"
    case .unlock: "unlock"
    case .pass: "pass"
    }
  }
}
