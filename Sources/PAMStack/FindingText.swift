import SallyportCore

extension StackFinding {
  /// One line for people: what it means, with the place in front where there is one.
  package var text: String {
    switch self {
    case .fault(let fault): return "\(fault.place.text): \(fault.problem.text)"
    case .moduleMissing(let place, let module):
      return "\(place.text): the module \(printable(module)) cannot be loaded"
    case .nobodyPasses(let phase): return "nobody can pass the \(phase) stack"
    case .tooComplex(let phase): return "the \(phase) stack has too many branches to be sure of it"
    case .notAsked: return "nobody is asked for a code"
    case .authNeverRuns(let place):
      return (place.map { "\($0.text): " } ?? "") + "never asked: the program runs no auth phase"
    case .secondPrompt(let place, let other, let module):
      return "\(place.text): the program has one field, and \(printable(module)) "
        + "(\(other.text)) asks too"
    case .neverReached(let place):
      return "\(place.text): no login that succeeds gets to this line"
    case .skipped(let place, let by, let module, let answer):
      let module = printable(module)
      return "\(place.text): not asked where \(module) (\(by.text)) answers \(answer.name)"
    case .notCounted(let place):
      return "\(place.text): its refusal does not count; the control must be required"
    case .codeAlone(let place):
      return "\(place.text): a code alone lets in, whatever the password"
    case .unknownAlone(let place, let by, let module):
      return "\(place.text): a code alone lets in, unless \(printable(module)) (\(by.text)) "
        + "checks a password"
    case .nothingToTake(let place):
      return "\(place.text): use_first_pass, and nothing before it asks: it always fails"
    case .jumpPastEnd(let place):
      return "\(place.text): its jump leads past the end of the stack, which fails there"
    case .jumpedOver(let place, let by, let module):
      return "\(place.text): the jump of \(printable(module)) (\(by.text)) counts this line, "
        + "and leads to a refusal"
    case .askedTwice(let first, let second):
      return "\(second.text): asks a second time, after \(first.text)"
    case .wrongPasswordReaches(let place):
      return "\(place.text): a wrong password still reaches the code prompt"
    case .ignoreIsDenied(.auth, let place):
      return "\(place.text): who is not enrolled cannot pass: no other line says yes"
    case .ignoreIsDenied(let phase, let place):
      return "\(place.text): nobody can pass the \(phase) stack: no other line says yes"
    case .enrollWithoutLine(let place, let missing):
      return "\(place.text): enroll needs our line in the \(missing) stack of the same file"
    case .accountNotFirst(let place, let after, let isSkipped):
      return isSkipped
        ? "\(place.text): not reached where the stack ends before it; it must stand before "
          + after.text
        : "\(place.text): belongs before \(after.text)"
    case .sessionSkipped(let place): return "\(place.text): not reached in every login"
    case .enrollWithoutFirstFactor(let place):
      return "\(place.text): enroll, and nothing before it asks for a password"
    case .wrongPasswordEnrolls(let place, let by):
      let reason = by.map { ", since \($0.text) says yes" } ?? ""
      return "\(place.text): a wrong password would enroll\(reason)"
    case .enrollWithFirstPass(let place, let word):
      return "\(place.text): enroll and \(printable(word)) exclude each other"
    case .demandForbidden(let place):
      return "\(place.text): demand asks where nobody can answer"
    }
  }
}

extension StackProblem {
  /// What libpam makes of it.
  package var text: String {
    switch self {
    case .unknownType(let word):
      "\"\(printable(word))\" is no type of module: the line always fails"
    case .noType: "the line has no type: it always fails"
    case .noControl: "the line has no control: it always fails"
    case .noModule: "the line names no module: it always fails"
    case .badControl(let word):
      "\"\(printable(word))\" is no control: every answer counts as a failure"
    case .cannotInclude(let name): "\(printable(name)) cannot be included: the line always fails"
    case .noFileNamed: "the line includes no file"
    case .endless(let name): "\(printable(name)) includes itself: nobody gets in"
    case .unreadable: "libpam gives up reading here: nobody gets in"
    case .overlong: "a line is longer than 1,022 bytes: versions of libpam read it differently"
    case .noFile: "neither the service nor other has a file: nobody gets in"
    }
  }
}

/// A word of somebody's file.
private func printable(_ word: String) -> String { SallyportCore.printable(word.utf8, limit: 64) }
