package import OneTimePassword

/// One question of a login, from the program that asks it to `decide`: for whom, from where, under
/// which policy, until when, and what.
///
/// A program states what its frame has. The service of its machine, and a verifier after it, check
/// that, bring in what they alone know, and pass on the same question.
package struct LoginQuestion: Sendable {
  /// Where the login comes from. Whether a local one is the user's own, the service finds out.
  package enum StatedOrigin: Equatable, Sendable {
    case unknown
    case local
    /// In full: `remember` needs all of it.
    case address(NumericAddress)
  }

  /// What is asked.
  package indirect enum Verb: Sendable {
    /// How does this login go on? `mayEnroll`: the account phase can ask to enroll.
    case prepare(mayEnroll: Bool, after: FirstFactor)
    /// Is this response correct? One of more than `Response.maximumLength` bytes is not sent, only
    /// that it is too long.
    case attempt(Secret, knownAs: Malformation?, as: ResponseRole)
    /// What is enrolled?
    case enrolled
    /// Which level applies now to this user, if he is not enrolled?
    case level
    /// Remember the address of the request.
    case remember
    /// Count a login of a user who is not enrolled.
    case count
    /// Could an enrollment be made or changed now?
    case rehearse
    /// Change what is enrolled. `to`: the id of the enrollment that the change is meant for; 0 for
    /// `create`, where there must be none.
    case amend(EnrollmentChange, to: UInt64)
    /// As `enrolled`, and what is its owner told, who was accepted by this authenticator, or by a
    /// backup code? `told`: nothing is asked; these he was told by now, and they count as told.
    case notices(by: Label?, told: ToldNotices?)
  }

  /// Milliseconds for all that one login asks, without the time that a person types; no question
  /// has more.
  package static let patience: UInt64 = 5000

  /// The name as it was typed, 1 to 255 bytes; for `amend` the account's own.
  package var name: [UInt8]
  /// The name of the PAM service, up to 255 bytes.
  package var service: [UInt8]
  package var origin: StatedOrigin
  /// Its scalar values and `isRefusedByRule`; no lists of services are sent.
  package var policy: Policy
  /// For how long the caller waits for the answer.
  package var millisecondsLeft: UInt32
  package var verb: Verb
  /// For `attempt`: whether the fleet was away when the code was asked for, so that a backup code
  /// was (`Shape.isAway`).
  package var isAway: Bool
  /// Whether the caller understands `ServiceAnswer.begun`, and waits after it. The version of the
  /// frame says it.
  package var waits: Bool

  // MARK: what the program's frame does not say

  /// On the machine of the program; nil for a name that nobody can have.
  package var account: Account?
  /// Whether a local login is the user's own.
  package var isOwn = false
  /// The real uid of the program, where it is not root's: whose wrong codes these are.
  package var caller: UInt32?
  /// When the program gives up, in nanoseconds of CLOCK_MONOTONIC.
  /// Long ago where nobody has said when.
  package var deadline: UInt64 = 0

  package init(
    name: [UInt8], service: [UInt8], origin: StatedOrigin, policy: Policy, millisecondsLeft: UInt32,
    verb: Verb, isAway: Bool = false, waits: Bool = false
  ) {
    self.name = name
    self.service = service
    self.origin = origin
    self.policy = policy
    self.millisecondsLeft = millisecondsLeft
    self.verb = verb
    self.isAway = isAway
    self.waits = waits
  }
}

extension LoginQuestion {
  /// `time`: when its frame was here, in nanoseconds of CLOCK_MONOTONIC.
  package mutating func expire(since time: UInt64) {
    deadline = time &+ min(UInt64(millisecondsLeft), Self.patience) &* 1_000_000
  }

  /// As it was stated, also of this machine itself: for rules of the policy, and for records.
  package var statedAddress: NumericAddress? {
    if case .address(let address) = origin { address } else { nil }
  }

  /// In full; nil for a login that does not come from another machine.
  package var address: NumericAddress? {
    statedAddress.flatMap { $0.isElsewhere ? $0 : nil }
  }

  /// Where it comes from, as a decision sees it.
  package var place: Origin {
    if case .local = origin { return .local(own: isOwn) }
    return address.flatMap { NetworkAddress($0.bytes) }.map { .address($0) } ?? .unknown
  }
}

extension LoginQuestion.Verb {
  /// The verb as its byte in a frame.
  enum Number: UInt8 {
    case prepare = 1
    case attempt, enrolled, level, remember, count, amend, rehearse, notices
  }

  var number: Number {
    switch self {
    case .prepare: .prepare
    case .attempt: .attempt
    case .enrolled: .enrolled
    case .level: .level
    case .remember: .remember
    case .count: .count
    case .amend: .amend
    case .rehearse: .rehearse
    case .notices: .notices
    }
  }
}

extension EnrollmentChange {
  /// The change as its byte in a frame.
  enum Number: UInt8 {
    case create = 1
    case add, remove, rename, renew, give, revoke, replace
  }

  var number: Number {
    switch self {
    case .create: .create
    case .add: .add
    case .remove: .remove
    case .rename: .rename
    case .renew: .renew
    case .give: .give
    case .revoke: .revoke
    case .replace: .replace
    }
  }
}
