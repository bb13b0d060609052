import PAMStack
import SallyportCore
import SallyportSupport
import SallyportSystem

/// What a policy does to the users of one service. Pure.
struct PolicyFindings {
  let service: ServiceFacts
  private let area: Area

  init(_ service: ServiceFacts) {
    self.service = service
    area = .service(service.name)
  }

  private var policy: PolicyFacts { service.policy }

  /// Findings about the file itself.
  var file: [Finding] {
    if let error = policy.error {
      let message = Message(error, at: Invocation(verb: "doctor"))
      return [
        .error(
          "policy-file", .policy,
          message.text + (policy.isLastGood ? "; the last good file applies" : ""),
          fixes: message.hints.map { .command($0) },
          effect: policy.isLastGood ? nil : .locksOut("the unenrolled"))
      ]
    }
    let refused = PolicyText.refused(policy.refused)
    let holds = policy.isLastGood ? "last good file" : "strict policy"
    return policy.problems.map { problem in
      Finding.error(
        "policy-broken", .policy, "\(problem.text): not used; the \(holds) applies\(refused)",
        location: problem.location, fixes: [.advice("sallyport config check")],
        effect: policy.refused.isEmpty ? nil : .locksOut("those with no other code"))
    } + purposes + groups + languages
  }

  private var languages: [Finding] {
    policy.languages.map { problem in
      Finding.warning(
        "policy-language", .policy, "\(problem.text): users read English",
        location: problem.location, fixes: [.advice("sallyport.conf(5), language")])
    }
  }

  /// The others in the same line count as little: either the whole line is certain, or nothing is.
  private var purposes: [Finding] {
    policy.purposes.map { problem in
      Finding.warning(
        "policy-purpose", .policy, "\(problem.text): the key is not used",
        location: problem.location, fixes: [.advice("sallyport config check")])
    }
  }

  /// A rule with such a group matches nobody; one that requires codes and whose group does not
  /// exist matches everybody.
  private var groups: [Finding] {
    policy.groups.map { flaw in
      Finding(
        "policy-group", .policy, flaw.text, severity: flaw.isUnseen ? .unseen : .warning,
        location: flaw.location,
        fixes: [.advice("sallyport.conf(5), match_group; getent group")])
    }
  }

  /// A word on the line that the file overrules.
  var overruled: Finding? {
    guard policy.overrulesLine,
      let line = service.lines.of(.auth).first(where: { $0.has("nullok") })
    else { return nil }
    let words = ["auth", "required", line.module] + line.arguments.filter { $0 != "nullok" }
    return .warning(
      "policy-nullok", area, "nullok has no effect: \(policy.path) refuses the unenrolled",
      location: line.location, fixes: [.line(words.joined(separator: " "))])
  }
}
