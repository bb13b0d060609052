@testable import PAMStack

extension StackFinding {
  /// `name line`, of lines of /etc/pam.d/x without the file.
  var short: String {
    func at(_ location: FileLocation) -> String {
      location.text.replacing("/etc/pam.d/x:", with: "").replacing("/etc/pam.d/", with: "")
    }
    switch self {
    case .fault(let fault): return "fault \(at(fault.location))"
    case .moduleMissing(let location, _): return "missing \(at(location))"
    case .nobodyPasses(let phase): return "nobody \(phase)"
    case .tooComplex(let phase): return "complex \(phase)"
    case .notAsked: return "notAsked"
    case .authNeverRuns(let location): return "authNeverRuns \(location.map(at) ?? "-")"
    case .secondPrompt(let location, let other, _):
      return "prompts \(at(location)) and \(at(other))"
    case .neverReached(let location): return "never \(at(location))"
    case .skipped(let location, let by, _, _): return "skipped \(at(location)) by \(at(by))"
    case .notCounted(let location): return "notCounted \(at(location))"
    case .codeAlone(let location): return "alone \(at(location))"
    case .unknownAlone(let location, let by, _): return "alone \(at(location)) unless \(at(by))"
    case .nothingToTake(let location): return "starved \(at(location))"
    case .jumpPastEnd(let location): return "jump \(at(location))"
    case .jumpedOver(let location, let by, _): return "jumped \(at(location)) by \(at(by))"
    case .askedTwice(let one, let two): return "twice \(at(one)) \(at(two))"
    case .wrongPasswordReaches(let location): return "wrongReaches \(at(location))"
    case .ignoreIsDenied(let phase, let location): return "ignoreDenied \(phase) \(at(location))"
    case .enrollWithoutLine(let location, let missing):
      return "enroll \(at(location)) without \(missing)"
    case .accountNotFirst(let location, let after, let isSkipped):
      return "account \(at(location)) after \(at(after))\(isSkipped ? " skipped" : "")"
    case .sessionSkipped(let location): return "session \(at(location)) skipped"
    case .enrollWithoutFirstFactor(let location): return "enroll \(at(location)) without factor"
    case .wrongPasswordEnrolls(let location, let by):
      return "stranger enrolls \(at(location)) by \(by.map(at) ?? "nobody")"
    case .enrollWithFirstPass(let location, let word): return "enroll \(at(location)) with \(word)"
    case .demandForbidden(let location): return "demand \(at(location))"
    }
  }
}

extension Stacks {
  /// What is found of the prompts of a service with these auth lines, in short.
  static func prompts(of service: String, _ auth: String) -> [String] {
    var files = debian
    files[service] = ends(auth)
    return StackAnalysis(parse(service, in: files)).findings.map(\.short)
      .filter { $0.hasPrefix("prompts") || $0.hasPrefix("authNeverRuns") }
  }
}
