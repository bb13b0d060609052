import OneTimePassword
package import SallyportCore
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
  package private(set) var forwardPass = false
  /// `prompt=`
  package private(set) var prompt: [UInt8]?
  package private(set) var echo = false
  package private(set) var noDelay = false
  package private(set) var debug = false
  /// `enroll`: the administrator states that the account and session lines exist, and that no
  /// path through the stack forgives a wrong password.
  package private(set) var enroll = false
  /// `demand`: the account phase asks whoever the auth phase did not ask.
  package private(set) var demand = false
  /// `after-key`: sshd has accepted a key, or nobody gets in by this line.
  package private(set) var afterKey = false
  /// `wrong-password`: the line runs only after a wrong password, before the one that would ask.
  package private(set) var wrongPassword = false
  /// Unknown arguments: logged, and the strict policy applies.
  package private(set) var unknown: [[UInt8]] = []
  private var nullOK = false

  package init(_ words: [[UInt8]]) {
    for word in words { take(word) }
    // The code would be looked for in the password that an enrollment is let through for.
    if enroll, firstPass != .ask || forwardPass {
      enroll = false
      unknown.append(bytes(of: "enroll"))
    }
  }

  /// What applies if the policy file sets nothing.
  package var base: Policy {
    var policy = Policy()
    if nullOK { policy.enrollment = .voluntary }
    return policy
  }

  private mutating func take(_ word: [UInt8]) {
    if same("nullok", word) {
      nullOK = true
    } else if same("use_first_pass", word) {
      firstPass = .use
    } else if same("try_first_pass", word) {
      firstPass = .tryThenAsk
    } else if same("forward_pass", word) {
      forwardPass = true
    } else if same("echo", word) {
      echo = true
    } else if same("enroll", word) {
      enroll = true
    } else if same("demand", word) {
      demand = true
    } else if same("after-key", word) {
      afterKey = true
    } else if same("wrong-password", word) {
      wrongPassword = true
    } else if same("nodelay", word) {
      noDelay = true
    } else if same("debug", word) {
      debug = true
    } else {
      takeSetting(word)
    }
  }

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
