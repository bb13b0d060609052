package import SallyportCore

/// What the verifiers of this machine's fleet have saved of logins and acts.
package struct FleetLog {
  /// What is asked for.
  package enum Wanted {
    case logins, acts, both
  }

  /// What a login came to, or that somebody was changed, on one of the fleet's hosts. Its texts are
  /// whatever somebody chose.
  package struct Event {
    let time: UnixTime
    let host: [UInt8]
    /// As it was typed; empty where nobody has it.
    let user: [UInt8]
    let service: [UInt8]
    /// Where the login came from, as text.
    let address: [UInt8]
    /// `accepted`, or why not, as the lines of the log have it; of an act `act-` and its verb.
    let outcome: [UInt8]

    package init(
      _ time: UnixTime, host: [UInt8], user: [UInt8], service: [UInt8], address: [UInt8],
      outcome: [UInt8]
    ) {
      (self.time, self.host, self.user) = (time, host, user)
      (self.service, self.address, self.outcome) = (service, address, outcome)
    }
  }

  /// This machine's name in its fleet.
  let host: String
  /// The newest first.
  package let events: [Event]
  /// Whether there are older ones that were not asked for.
  package let isCut: Bool
  /// Why some are missing, or all; nil: none is.
  package let trouble: String?

  /// More of a kind are not asked for, of the oldest.
  package static let most = 2000

  package init(of host: String, _ events: [Event], isCut: Bool, trouble: String?) {
    (self.host, self.events, self.isCut, self.trouble) = (host, events, isCut, trouble)
  }
}
