import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// What reads as a request has values that a policy file, an enrollment and a login can have, and
  /// is written the same.
  // shows: own-account
  static let serviceRequest = Fuzzer(name: "service-request") { input in
    guard let request = LoginQuestion.decode(secret(input)) else { return }
    must((1...255).contains(request.name.count) && request.service.count <= 255, "the names")
    isWithinBounds(request.policy)
    isWithinBounds(request.verb, of: request)
    let again = unwrapped(request.encoded(), "does not write what it read")
    must(bytes(again) == input, "is written otherwise")
  }

  /// The first byte says to which verb the rest answers.
  static let serviceAnswer = Fuzzer(name: "service-answer") { input in
    var input = Input(input)
    let verb = verbs[Int(input.byte() % 8)]
    let frame = input.remaining()
    guard let answer = ServiceAnswer.decode(frame, to: verb) else { return }
    must(unwrapped(answer.encoded(), "does not write what it read") == frame, "written otherwise")
    must(isAnswer(answer, to: verb), "\(answer) to \(verb)")
    if case .prompt(_, let shape) = answer { isWithinBounds(shape) }
    if case .told(let shape, let notices) = answer {
      isWithinBounds(shape)
      must((1...14).contains(notices.count), "how many notices")
    }
  }
}

/// Made each time: in a global the leak sanitizer does not see what an enum refers to.
private var verbs: [LoginQuestion.Verb] {
  [
    .prepare(mayEnroll: true, after: .password),
    .attempt(secret([]), knownAs: nil, as: .firstPass), .enrolled, .level, .remember, .count,
    .amend(.remove(Label("phone")), to: 1), .notices(by: nil, told: nil),
  ]
}

private func isWithinBounds(_ policy: Policy) {
  must(policy.adjacentIntervals <= Policy.mostAdjacentIntervals, "adjacent_intervals")
  must(policy.lookAhead <= 100, "look_ahead")
  must(GuessProbability.budgets.contains(policy.guessBudget), "guess_budget")
  must((1...100).contains(policy.remindEvery), "remind_every")
  must(policy.requiredFrom.seconds >= 0, "required_from")
  must(policy.remember <= 366 * 86_400, "remember")
  must((1...3).contains(policy.minimumFactors), "minimum_factors")
}

private func isWithinBounds(_ verb: LoginQuestion.Verb, of request: LoginQuestion) {
  switch verb {
  case .prepare, .enrolled, .level, .count, .rehearse, .notices: break
  case .remember:
    if case .address = request.origin { return }
    must(false, "remembers no address")
  case .attempt(let typed, _, let role):
    must(typed.count <= Response.maximumLength, "a response that is too long")
    guard case .last(let charge?) = role else { return }
    must(charge.amount <= GuessProbability.budgets.upperBound, "gives back too much")
  case .amend(let change, let id): isWithinBounds(change, to: id, of: request.name)
  }
}

private func isWithinBounds(_ change: EnrollmentChange, to id: UInt64, of name: [UInt8]) {
  switch change {
  case .create(let enrollment):
    must(id == 0 && enrollment.id != 0 && enrollment.user.bytes == name, "enrolls another")
    must((1...8).contains(enrollment.authenticators.count), "how many authenticators")
  case .add(let authenticators, _), .replace(let authenticators, _, _):
    must(id != 0 && authenticators.count <= 8, "adds")
  case .give(let pass):
    must(id != 0, "gives a pass to nobody")
    must(pass.id != 0 && Pass.usesRange.contains(UInt64(pass.uses)), "a pass")
  case .remove, .rename, .renew, .revoke: must(id != 0, "changes nothing")
  }
}

private func isWithinBounds(_ shape: Shape) {
  must(shape.enrollmentID != 0, "the shape")
  if shape.isAway { return must(shape == .away(as: shape.enrollmentID), "tells while it is away") }
  must((1...8).contains(shape.authenticators.count), "how many authenticators")
  for one in shape.authenticators {
    must(Label(one.name.bytes) == one.name && one.kind != .backupCode, "an authenticator")
  }
  must((0...64).contains(shape.backupCodesLeft ?? 0), "backup codes")
  must(!shape.hasScratchCodes || shape.backupCodesLeft != nil, "scratch codes")
}

private func isAnswer(_ answer: ServiceAnswer, to verb: LoginQuestion.Verb) -> Bool {
  switch (verb, answer) {
  case (_, .trouble), (_, .notServed), (.prepare, .skip), (.attempt, .outcome),
    (.enrolled, .notEnrolled), (.enrolled, .prompt(.enrolled, _)), (.level, .level),
    (.notices, .notEnrolled), (.notices, .prompt(.enrolled, _)), (.notices, .told),
    (.notices, .done),
    (.count, .count), (.remember, .done), (.amend, .done), (.amend, .changed), (.amend, .flaw):
    true
  case (.prepare, .prompt(let status, let shape)): status == .enrolled || !shape.isRemembered
  case (.prepare, .enroll(let level)): level != .refuse && level != .voluntary
  case _: false
  }
}
