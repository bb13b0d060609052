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
    } + groups
  }

  /// A rule with such a group matches nobody; one that requires codes and whose group does not
  /// exist matches everybody.
  private var groups: [Finding] {
    policy.groups.map { flaw in
      Finding.warning(
        "policy-group", .policy, flaw.text, location: flaw.location,
        fixes: [.advice("sallyport.conf(5), match_group; getent group")])
    }
  }

  /// Findings about the users.
  var people: [Finding] {
    if policy.isDisabled {
      return [
        .warning(
          "policy-disabled", area, "the policy asks nobody for a code here (state = disabled)",
          location: FileLocation(file: policy.path),
          fixes: [.advice("sallyport config show --service \(service.name)")],
          effect: .letsIn("anybody with the password in \(service.name)"))
      ]
    }
    return [refused, enrolling, passing, stranded, overruled].compactMap { $0 }
  }

  /// The users for whom `test` is true, if this service asks for codes.
  private func names(_ test: (PolicyFacts.Person) -> Bool) -> [String] {
    guard service.lines.isInAuth else { return [] }
    return policy.unenrolled.filter { $0.error == nil && test($0) }.map(\.name)
  }

  private func made(
    _ id: String, _ severity: Severity, _ text: String, of names: [String],
    effect: (String) -> Effect
  ) -> Finding? {
    guard let first = names.first else { return nil }
    let list = listed(names)
    return Finding(
      id, area, "\(text): \(list)", severity: severity,
      fixes: [.command(sallyportCommand("enroll", on: [first]))], effect: effect(list))
  }

  private var refused: Finding? {
    let names = names { !$0.isDisabled && $0.action == .refuse }
    return made("people-refused", .error, "not enrolled and therefore refused", of: names) { list in
      .locksOut("\(list) from \(service.name)")
    }
  }

  private var enrolling: Finding? {
    let names = names { person in
      if case .enroll = person.action { return !person.isDisabled }
      return false
    }
    return made(
      "people-enrolling", .warning,
      "not enrolled yet, so anybody with the password may set up a phone", of: names
    ) { list in .letsIn("\(list) in \(service.name) until enrolled") }
  }

  private var passing: Finding? {
    let names = names { $0.isDisabled || $0.action == .pass }
    return made("people-passing", .warning, "not enrolled, and passes without a code", of: names) {
      list in
      .letsIn("\(list) in \(service.name)")
    }
  }

  private var stranded: Finding? {
    guard let first = policy.stranded.first, service.lines.isInAuth else { return nil }
    let list = listed(policy.stranded)
    return .error(
      "people-stranded", area, "enrolled only with factors that the policy turns off: \(list)",
      location: FileLocation(file: policy.path),
      fixes: [.command(sallyportCommand("add", on: [first], ["--force"]))],
      effect: .locksOut("\(list) from \(service.name)"))
  }

  private var overruled: Finding? {
    guard policy.overrulesLine,
      let line = service.lines.of(.auth).first(where: { $0.has("nullok") })
    else { return nil }
    let words = ["auth", "required", line.module] + line.arguments.filter { $0 != "nullok" }
    return .warning(
      "policy-nullok", area, "nullok has no effect: \(policy.path) refuses the unenrolled",
      location: line.location, fixes: [.line(words.joined(separator: " "))])
  }
}
