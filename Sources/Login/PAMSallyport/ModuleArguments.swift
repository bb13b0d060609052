import OneTimePassword
package import SallyportCore
import SallyportLogin
package import SallyportSystem

/// The arguments of the module's line in /etc/pam.d.
package struct ModuleArguments: Sendable {
  /// Where `use_first_pass` and `try_first_pass` look for the code.
  package enum FirstPass: Sendable { case ask, use, tryThenAsk }

  /// `store=`: the directory, and that the effective user may own it.
  package private(set) var store = Store()
  /// Whether `store=` stands on the line.
  package private(set) var hasOwnStore = false
  /// `conf=`: a policy file that must exist, instead of the default one.
  package private(set) var policyFile: [UInt8]?
  package private(set) var firstPass = FirstPass.ask
  /// `forward_pass`: a password and a code in one field; the password is passed on.
  package var forwardPass: Bool { has(.forwardPass) }
  /// `prompt=`
  package private(set) var prompt: [UInt8]?
  package var echo: Bool { has(.echo) }
  package var noDelay: Bool { has(.noDelay) }
  /// `enroll`: the administrator states that the account and session lines exist, and that no
  /// path through the stack forgives a wrong password.
  package var enroll: Bool { has(.enroll) }
  /// `demand`: the account phase asks users whom the auth phase did not ask.
  package var demand: Bool { has(.demand) }
  /// `after-key`: sshd has accepted a key, or nobody gets in by this line.
  package var afterKey: Bool { has(.afterKey) }
  /// `wrong-password`: the line runs only after a wrong password, before the one that would ask.
  package var wrongPassword: Bool { has(.wrongPassword) }
  /// Unknown arguments: logged, and the policy is tightened.
  package private(set) var unknown: [[UInt8]] = []
  /// Whether one of them was meant to keep people out, so that the line refuses everybody.
  package var isRefusing: Bool {
    var before: [UInt8] = []
    for word in unknown {
      // A blank for a hyphen makes two words of one.
      for one in [word, before + [UInt8(ascii: "-")] + word] {
        if ModuleWord(meantBy: one)?.isNarrowing == true { return true }
      }
      before = word
    }
    return false
  }
  /// The words without a value, as bits.
  private var flags: UInt16 = 0

  package init(_ words: [[UInt8]]) {
    for word in words { take(word) }
    // The code would be looked for in the password that an enrollment is let through for.
    if enroll, firstPass != .ask || forwardPass {
      flags &= ~(1 << UInt16(ModuleWord.enroll.rawValue))
      unknown.append(bytes(of: "enroll"))
    }
  }

  /// What applies if the policy file sets nothing.
  package var base: Policy {
    var policy = Policy()
    if has(.nullOK) { policy.enrollment = .voluntary }
    return policy
  }

  private mutating func take(_ word: [UInt8]) {
    guard let known = ModuleWord(word) else { return takeSetting(word) }
    flags |= 1 << UInt16(known.rawValue)
    if known == .useFirstPass { firstPass = .use }
    if known == .tryFirstPass { firstPass = .tryThenAsk }
  }

  private func has(_ word: ModuleWord) -> Bool { flags >> UInt16(word.rawValue) & 1 == 1 }

  private mutating func takeSetting(_ word: [UInt8]) {
    if let directory = rest(of: word, after: "store="), directory.first == UInt8(ascii: "/") {
      store = Store(root: directory, owner: .effectiveUser)
      hasOwnStore = true
    } else if let file = rest(of: word, after: "conf="), file.first == UInt8(ascii: "/") {
      policyFile = file
    } else if let text = rest(of: word, after: "prompt="), isPrompt(text) {
      prompt = text
    } else {
      unknown.append(word)
    }
  }

  /// As a label, but it may end with a space.
  private func isPrompt(_ text: [UInt8]) -> Bool {
    (1...Label.maximumLength).contains(text.count) && Label.isPresentable(text)
  }
}
