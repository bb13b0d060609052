/// What members of the helpdesk may do for somebody, without root.
package enum HelpVerb: CaseIterable, Sendable {
  case status, unlock, pass
  /// A pass whose login ends in a new enrollment.
  case passEnroll
  /// Also to lift what a helper has blocked.
  case block

  /// As in `helpdesk_may`.
  package var name: StaticString {
    switch self {
    case .status: "status"
    case .unlock: "unlock"
    case .pass: "pass"
    case .passEnroll: "pass-enroll"
    case .block: "block"
    }
  }

  /// Where the policy does not say.
  package static var usual: [HelpVerb] { [.status, .unlock, .pass] }
}
