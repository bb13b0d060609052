/// What a host of a fleet knows of it.
package struct FleetFacts: Equatable {
  /// One of its verifiers, as it answers this host.
  package struct Verifier: Equatable {
    let address: String
    let answer: Answer
    /// What the answer means, as `sallyport fleet status` says it.
    let text: String
    /// How far its clock is ahead of this machine's, in seconds; nil where it has not said.
    let clockOffset: Int64?

    package init(address: String, answer: Answer, text: String, clockOffset: Int64?) {
      (self.address, self.answer, self.text) = (address, answer, text)
      self.clockOffset = clockOffset
    }
  }

  /// What comes of asking a verifier.
  package enum Answer: Equatable {
    case verifies
    /// Another key than the fleet's is there.
    case foreign
    /// It does not know this host.
    case stranger
    /// This host was revoked.
    case revoked
    /// It refuses all logins, or cannot be asked.
    case away
  }

  var verifiers: [Verifier]
  /// Who becomes root here while the fleet is away.
  var breakGlass: [String]
  /// Users who are enrolled here, although the fleet verifies all their logins.
  var unasked: [String]
  /// What this host may do beside asking, and how much of it is left, as `sallyport fleet status`
  /// says it; empty where no verifier has said it.
  var rights: [String]
  /// What it means that the verifiers accept codes here only from known places; nil: they do not
  /// say so.
  var closing: String?

  package init(
    verifiers: [Verifier], breakGlass: [String], unasked: [String] = [], rights: [String] = [],
    closing: String? = nil
  ) {
    (self.verifiers, self.breakGlass, self.unasked) = (verifiers, breakGlass, unasked)
    (self.rights, self.closing) = (rights, closing)
  }
}
