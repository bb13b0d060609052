package import SallyportCore
package import SallyportSystem

/// The words of the module's line in /etc/pam.d.
package struct ModuleArguments: Sendable {
  /// Where the words `use_first_pass` and `try_first_pass` say the code is looked for.
  package enum FirstPass: Sendable { case ask, use, tryThenAsk }

  /// `store=`: the folder, and that the effective user may own it.
  package private(set) var store = Store()
  package private(set) var firstPass = FirstPass.ask
  /// `forward_pass`: a password and a code stand in one field; the password is handed on.
  package private(set) var forwardPass = false
  /// `prompt=`
  package private(set) var prompt: [UInt8]?
  package private(set) var echo = false
  package private(set) var noDelay = false
  package private(set) var debug = false
  /// Words that mean nothing here: logged, and the strict policy holds.
  package private(set) var unknown: [[UInt8]] = []
  private var nullOK = false

  package init(_ words: [[UInt8]]) {
    for word in words { take(word) }
  }

  /// The policy of this line: a typing error never opens anything.
  package var policy: Policy {
    guard unknown.isEmpty else { return .strict }
    var policy = Policy()
    if nullOK { policy.enrollment = .voluntary }
    return policy
  }

  private mutating func take(_ word: [UInt8]) {
    if word.elementsEqual("nullok".utf8) {
      nullOK = true
    } else if word.elementsEqual("use_first_pass".utf8) {
      firstPass = .use
    } else if word.elementsEqual("try_first_pass".utf8) {
      firstPass = .tryThenAsk
    } else if word.elementsEqual("forward_pass".utf8) {
      forwardPass = true
    } else if word.elementsEqual("echo".utf8) {
      echo = true
    } else if word.elementsEqual("nodelay".utf8) {
      noDelay = true
    } else if word.elementsEqual("debug".utf8) {
      debug = true
    } else {
      takeSetting(word)
    }
  }

  private mutating func takeSetting(_ word: [UInt8]) {
    if word.starts(with: "store=/".utf8) {
      let folder = String(decoding: word.dropFirst(6), as: UTF8.self)
      store = Store(root: folder, owner: .effectiveUser)
    } else if word.starts(with: "prompt=".utf8), isPrompt(word.dropFirst(7)) {
      prompt = [UInt8](word.dropFirst(7))
    } else {
      unknown.append(word)
    }
  }

  /// As a label, but it may end with a space.
  private func isPrompt(_ text: ArraySlice<UInt8>) -> Bool {
    (1...Label.maximumLength).contains(text.count) && Label.isPresentable(text)
  }
}
