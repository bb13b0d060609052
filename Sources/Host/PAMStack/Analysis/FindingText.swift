import SallyportCore

extension StackFinding {
  /// One line to show: the fact, after the file and line if it is about one.
  package var text: String { location.map { "\($0.text): \(fact)" } ?? fact }

  /// The line that the finding is about.
  package var location: FileLocation? {
    switch self {
    case .fault(let fault): fault.location
    case .nobodyPasses, .tooComplex, .notAsked: nil
    case .authNeverRuns(let location): location
    case .moduleMissing(let location, _), .secondPrompt(let location, _, _),
      .neverReached(let location),
      .skipped(let location, _, _, _), .notCounted(let location), .codeAlone(let location),
      .unknownAlone(let location, _, _), .nothingToTake(let location), .jumpPastEnd(let location),
      .jumpedOver(let location, _, _), .askedTwice(_, let location),
      .wrongPasswordReaches(let location),
      .ignoreIsDenied(_, let location), .enrollWithoutLine(let location, _),
      .accountNotFirst(let location, _, _), .sessionSkipped(let location),
      .enrollWithoutFirstFactor(let location), .wrongPasswordEnrolls(let location, _),
      .enrollWithFirstPass(let location, _), .demandForbidden(let location):
      location
    }
  }

  /// The finding in words, without file and line.
  package var fact: String {
    switch self {
    case .fault(let fault): return fault.problem.text
    case .moduleMissing(_, let module): return "\(shown(module)) does not exist: the line fails"
    case .nobodyPasses(let phase): return "nobody can pass the \(phase) stack"
    case .tooComplex(let phase): return "the \(phase) stack has too many branches to check"
    case .notAsked: return "no auth line names pam_sallyport.so: nobody is asked for a code"
    case .authNeverRuns: return "the program runs no auth phase: nobody is asked for a code"
    case .secondPrompt(_, let other, let module):
      return "the program has one answer for every prompt, and \(shown(module)) "
        + "(\(other.text)) asks too"
    case .neverReached: return "no successful login reaches this line"
    case .skipped(_, let by, let module, let answer):
      return "a login succeeds without this line where \(shown(module)) (\(by.text)) "
        + "returns \(answer.name)"
    case .notCounted:
      return "a login succeeds with a wrong code: the control of this line must be required"
    case .codeAlone: return "a code alone is enough, whatever the password"
    case .unknownAlone(_, let by, let module):
      return "a code alone is enough, unless \(shown(module)) (\(by.text)) checks a password"
    case .nothingToTake:
      return "use_first_pass, but nothing before this line asks for a password: it always fails"
    case .jumpPastEnd: return "its jump goes past the end of the stack, which fails there"
    case .jumpedOver(_, let by, let module):
      return "the jump of \(shown(module)) (\(by.text)) counts this line, "
        + "and leads to a refusal"
    case .askedTwice(let first, _):
      return "asks for a second code, after \(first.text), and each code works once"
    case .wrongPasswordReaches:
      return "a wrong password still reaches the code prompt: a stranger can use up the budget"
    case .ignoreIsDenied(.auth, _):
      return "anyone who is not asked for a code is refused: no other line succeeds"
    case .ignoreIsDenied(let phase, _):
      return "nobody can pass the \(phase) stack: no other line succeeds"
    case .enrollWithoutLine(_, .account):
      return "enroll without its account line: unenrolled users are let in and never enrolled"
    case .enrollWithoutLine(_, let missing):
      return "enroll without its \(missing) line: nothing guards against a missing account line"
    case .accountNotFirst(_, let after, let isSkipped):
      return isSkipped
        ? "a login succeeds without this line: it must come before \(after.text)"
        : "should come before \(after.text)"
    case .sessionSkipped: return "a session can open without this line"
    case .enrollWithoutFirstFactor:
      return "nobody can enroll here: nothing before this line asks for a password"
    case .wrongPasswordEnrolls(_, let by):
      let reason = by.map { ", since \($0.text) succeeds" } ?? ""
      return "a stranger with a wrong password can enroll\(reason)"
    case .enrollWithFirstPass(_, let word):
      return "enroll and \(shown(word)) cannot be used together"
    case .demandForbidden: return "demand where nobody can answer a prompt"
    }
  }
}

extension StackProblem {
  /// What the problem does in libpam.
  package var text: String {
    switch self {
    case .unknownType(let word):
      "unknown type \"\(shown(word))\": the line always fails"
    case .noType: "the line has no type: it always fails"
    case .noControl: "the line has no control: it always fails"
    case .noModule: "the line names no module: it always fails"
    case .badControl(let word):
      "invalid control \"\(shown(word))\": every answer counts as a failure"
    case .cannotInclude(let name): "\(shown(name)) cannot be included: the line always fails"
    case .noFileNamed: "the line includes no file"
    case .endless(let name): "\(shown(name)) includes itself: nobody gets in"
    case .unreadable: "libpam gives up reading here: nobody gets in"
    case .overlong: "a line is longer than 1,022 bytes: versions of libpam read it differently"
    case .noFile: "neither the service nor other has a file: nobody gets in"
    }
  }
}

/// Makes a word from a configuration file safe to show.
func shown(_ word: String) -> String { printable(word.utf8, limit: 64) }
