import Foundation
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let right = "050471"  // RFC 6238, appendix B, SHA-1, at 1111111111

/// Each text that is one edit away from a word.
private func oneEdit(from word: String) -> [String] {
  let letters = Array(word)
  return letters.indices.flatMap { place -> [String] in
    var (left, put, other, swapped) = (letters, letters, letters, letters)
    left.remove(at: place)
    put.insert("x", at: place)
    other[place] = "x"
    if place > 0 { swapped.swapAt(place - 1, place) }
    return [left, put, other, swapped].map { String($0) }.filter { $0 != word }
  } + [word.replacing("-", with: "_"), word.replacing("_", with: "-")].filter { $0 != word }
}

@Suite struct `A word of the line with one letter wrong` {
  let host = ScriptedHost()
  let store: TestStore

  init() throws {
    store = try TestStore()
    try store.enrollAlice()
    // After a key and a password, so that every right line can let alice in.
    (host.sshInfo, host.token) = ("publickey ssh-ed25519 AAAA\n", right)
    host.userName = .success(Array("alice".utf8))
  }

  private func arguments(_ words: [String]) -> ModuleArguments {
    ModuleArguments(words.map { Array($0.utf8) })
  }

  /// Each word that narrows, or says by which files, as it would be typed.
  static let narrowing = ModuleWord.allCases.filter(\.isNarrowing).map { word in
    "\(word.name)" + (word.hasValue ? "/nowhere" : "")
  }

  static func misspelt(_ word: ModuleWord) -> [String] {
    let name = "\(word.name)"
    let typed = oneEdit(from: name).map { word.hasValue ? $0 + "/nowhere" : $0 }
    return word.hasValue ? typed + ["\(name)relative", name] : typed
  }

  // shows: unknown-word
  @Test(arguments: ModuleWord.allCases.filter(\.isNarrowing))
  func `that keeps people out refuses everybody in auth and account, and nobody is asked`(
    word: ModuleWord
  ) throws {
    #expect(Self.misspelt(word).count > 10)
    for typed in Self.misspelt(word) {
      let line = arguments([typed, "nullok"])
      for user in ["alice", "bob", "nobody-here"] {
        host.userName = .success(Array(user.utf8))
        #expect(authenticate(host, line, store: store) == .refused, "\(typed) \(user)")
        #expect(manageAccount(host, line, store: store) == .denied, "\(typed) \(user)")
        // As after the right word: the session phase says nothing but what the account phase left.
        #expect(openSession(host) == .denied)
        try host.setMark(nil)
      }
      #expect(
        host.log.last { $0.line.hasPrefix("unknown argument") }?.line
          == "unknown argument \"\(typed)\", meant as \"\(word.name)\": this line refuses everybody"
      )
    }
  }

  /// A blank for a hyphen makes two words of one; a word that keeps people out has no value.
  @Test(arguments: [
    ["after", "key"], ["nodelay", "after", "key"], ["wrong", "password"], ["after-key=1"],
    ["demand=yes"], ["use_first_pass,echo"],
  ]) func `that is cut in two or has more behind it refuses`(_ words: [String]) {
    #expect(arguments(words).isRefusing)
    #expect(!arguments(["after"]).isRefusing && !arguments(["key", "nodelay"]).isRefusing)
  }

  /// Where the line with the right word would have kept the next one from asking.
  @Test func `that is not wrong-password keeps the next line from asking too`() {
    #expect(authenticate(host, arguments(["wrong_pasword"]), store: store) == .refused)
    #expect(authenticate(host, arguments(["wrong_password"]), store: store) == .refused)
    #expect(authenticate(host, arguments([]), store: store) == .refused)
    #expect(host.isUsedUp)
  }

  @Test(arguments: ModuleWord.allCases.filter { !$0.isNarrowing })
  func `that does not keep people out tightens, and lets alice in`(word: ModuleWord) throws {
    for typed in oneEdit(from: "\(word.name)") where ModuleWord(meantBy: Array(typed.utf8)) == word
    {
      let line = arguments([typed])
      guard !line.unknown.isEmpty else { continue }
      #expect(!line.isRefusing, "\(typed)")
      let store = try TestStore()
      try store.enrollAlice()
      host.token = "the password"
      host.userName = .success(Array("alice".utf8))
      host.expect(answer: right)
      #expect(authenticate(host, line, store: store) == .success, "\(typed)")
      host.userName = .success(Array("bob".utf8))
      host.expect(answer: right)
      #expect(authenticate(host, line, store: store) == .refused, "\(typed)")
      #expect(host.isUsedUp)
    }
  }

  /// The administrator's policy, tightened: not a fresh one.
  @Test(arguments: [
    ("factor_totp = off", right), ("factor_backup_code = off", "7KMF-2X9Q-D4TW-0HZA"),
    ("adjacent_intervals = 0", "081804"),
  ]) func `leaves off what the policy has switched off`(_ setting: String, _ code: String) throws {
    let path = store.directory.path + "/policy.conf"
    try Data("[default]\nstate = disabled\n\(setting)\n".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    for words in [["no_delay"], ["nonsense"], ["no_delay", "nullok"]] {
      host.expect(answer: code)
      let line = arguments(["conf=" + path] + words)
      #expect(authenticate(host, line, store: store) == .refused, "\(words)")
      #expect(host.isUsedUp)
    }
  }

  /// Whom the policy lets pass, such a line asks: and lets in with the code.
  @Test(arguments: [
    "[default]\nstate = disabled", "[rule a]\nmatch_user = alice\nstate = disabled",
  ]) func `asks whom the policy does not ask, and lets alice in`(_ policy: String) throws {
    let path = store.directory.path + "/policy.conf"
    try Data("\(policy)\n".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    host.token = "the password"
    #expect(authenticate(host, arguments(["conf=" + path]), store: store) == .ignore)
    host.expect(answer: right)
    #expect(authenticate(host, arguments(["conf=" + path, "nulok"]), store: store) == .success)
    #expect(host.isUsedUp)
  }
}
