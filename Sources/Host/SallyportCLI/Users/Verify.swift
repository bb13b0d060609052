import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSupport

/// `sallyport verify`
struct Verify: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Check a code as a login would, and use it up.",
    discussion: """
      The code is asked for on a terminal, or read from standard input. Exit status 0: the code \
      is correct; 1: it is not.
      """)

  @OptionGroup var shared: SubjectOptions<CallerConfirmed>

  @OptionGroup var policy: PolicyOptions

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let person = try subject.person(policy)
    let pending = try person.enrolled()
    let output = subject.output
    context.terminal.watchForInterruption()
    let typed = try output.ask("Verification code: ", echo: false, or: .nothingChanged)
    let proof: Proof
    do throws(CommandError) {
      proof = try person.proof(typed, pending)
    } catch {
      if case .code(let rejection) = error.cause, output.isJSON {
        output.answer(Answer(rejection), "")
      }
      throw error
    }
    output.answer(Answer(proof), Verify.text(proof))
  }

  private static func text(_ proof: Proof) -> String {
    switch proof {
    case .authenticator(let name, let drift):
      let clock = driftText(drift).map { "; its clock is \($0)" } ?? ""
      return "Correct: a code of \"\(name.text)\"\(clock). It is used up now."
    case .backupCode(let left):
      return "Correct: a backup code. It is used up now, \(counted(left, "backup code")) left."
    case .pass(let left):
      return
        "Correct: a pass, \(left == 0 ? "used up now" : "good for \(counted(left, "more login"))")."
    case .claim: return "Correct: a pass that must enroll."
    }
  }

  private struct Answer: Encodable {
    let accepted: Bool
    var authenticator: String?
    var drift: Int32?
    var backupCodesLeft: Int?
    var passUsesLeft: Int?
    var reason: String?
    var clockOffset: Int64?

    init(_ proof: Proof) {
      accepted = true
      switch proof {
      case .authenticator(let name, let drift): (authenticator, self.drift) = (name.text, drift)
      case .backupCode(let left): backupCodesLeft = left
      case .pass(let left), .claim(let left): passUsesLeft = left
      }
    }

    init(_ rejection: CodeRefused) {
      (accepted, reason) = (false, rejection.refusal.word)
      clockOffset = rejection.clockOffset
    }
  }
}

extension Refusal {
  /// The reason, in the word that the module logs.
  fileprivate var word: String {
    switch self {
    case .malformed: "malformed"
    case .wrongCode: "wrong-code"
    case .replayed: "replayed"
    case .throttled: "throttled"
    case .clock: "clock"
    case .mustEnroll: "must-enroll"
    }
  }
}
