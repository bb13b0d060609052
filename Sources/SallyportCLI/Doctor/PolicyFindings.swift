import SallyportCore
import SallyportSystem

/// What a policy does to the people of one service. Pure.
struct PolicyFindings {
  let service: ServiceFacts
  private let area: Area

  init(_ service: ServiceFacts) {
    self.service = service
    area = .service(service.name)
  }

  private var policy: PolicyFacts { service.policy }

  /// Of the file itself.
  var file: [Finding] {
    if let trouble = policy.trouble {
      let message = Message(trouble, at: Place(verb: "doctor"))
      return [
        Finding(
          id: "policy-file", area: .policy, severity: .error, text: message.text,
          mends: message.hints.map { .command($0) }, effect: .locksOut("the unenrolled"))
      ]
    }
    return policy.problems.map { problem in
      Finding(
        id: "policy-broken", area: .policy, severity: .error,
        text: "\(problem.text): the file is not used, an older one or the strict policy holds",
        place: problem.place, mends: [.advice("sallyport config check")])
    }
  }

  /// Of the people.
  var people: [Finding] {
    if policy.isDisabled {
      return [
        Finding(
          id: "policy-disabled", area: area, severity: .warning,
          text: "the policy asks nobody for a code here (state = disabled)",
          place: FilePlace(file: policy.path),
          mends: [.advice("sallyport config show --service \(service.name)")],
          effect: .letsIn("whoever has the password, in \(service.name)"))
      ]
    }
    return [refused, passing, overruled].compactMap { $0 }
  }

  private var refused: Finding? {
    let names = policy.unenrolled.filter { $0.isRefused && !$0.isDisabled }.map(\.name)
    guard let first = names.first, service.lines.isInAuth else { return nil }
    let list = listed(names)
    return Finding(
      id: "people-refused", area: area, severity: .error,
      text: "not enrolled and therefore refused: \(list)",
      mends: [.command("sallyport enroll --user \(shellQuoted(first))")],
      effect: .locksOut("\(list) from \(service.name)"))
  }

  private var passing: Finding? {
    let names = policy.unenrolled.filter { !$0.isRefused || $0.isDisabled }.map(\.name)
    guard let first = names.first, service.lines.isInAuth else { return nil }
    let list = listed(names)
    return Finding(
      id: "people-passing", area: area, severity: .warning,
      text: "not asked for a code, as the policy or nullok says: \(list)",
      mends: [.command("sallyport enroll --user \(shellQuoted(first))")],
      effect: .letsIn("\(list) in \(service.name)"))
  }

  private var overruled: Finding? {
    guard policy.overrulesLine,
      let line = service.lines.of(.auth).first(where: { $0.has("nullok") })
    else { return nil }
    let words = ["auth", "required", line.path] + line.words.filter { $0 != "nullok" }
    return Finding(
      id: "policy-nullok", area: area, severity: .warning,
      text: "nullok has no effect: \(policy.path) refuses the unenrolled", place: line.place,
      mends: [.line(words.joined(separator: " "))])
  }

  private func listed(_ names: [String]) -> String {
    let shown = names.prefix(5).joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
  }
}
