import Testing

@testable import PAMStack

/// What `enable` makes of stacks by chance, checked by libpam's walk (RealityTests) and by what
/// each module is documented to answer.
@Suite struct `Enabling in stacks by chance` {
  private typealias Answers = [String: PAMCode]

  /// Of each line, by its own word: every way in which its modules may answer.
  private func answers(_ lines: [String]) -> [Answers] {
    var all: [Answers] = [[:]]
    for line in lines {
      let word = line.split(separator: " ").last.map(String.init) ?? ""
      all = all.flatMap { answers in codes(line).map { answers.merging([word: $0]) { $1 } } }
    }
    return all
  }

  private func codes(_ line: String) -> [PAMCode] {
    if line.contains("pam_permit") { return [.success] }
    if line.contains("pam_deny") { return [.authenticationError] }
    let ignoring = [
      "nouserok", "nullok", "minimum_uid", "pam_corp", "pam_securid", "pam_localuser",
    ]
    let ignores = ignoring.contains { line.contains($0) }
    return [.success, .authenticationError] + (ignores ? [.ignore] : [])
  }

  /// With a right code, where it is asked for.
  private func lets(_ stack: ServiceStack, _ answers: Answers) -> Bool {
    stack.verdict(.auth) { entry in
      entry.moduleName == "pam_sallyport"
        ? .success : entry.arguments.last.flatMap { answers[$0] } ?? .abort
    } == .success
  }

  // shows: enable-admits
  @Test func `a right code lets in whom the stack let in before, and nobody else`() throws {
    let machine = try PamFiles([:])
    let directory = StackDirectory(root: machine.root)
    var (written, admitted) = (0, 0)
    for seed in 0..<150 {
      var random = RandomStack(seed: UInt64(seed), directory: "")
      let lines = random.auth()
      let text =
        lines.joined(separator: "\n")
        + "\naccount required pam_unix.so\nsession required pam_unix.so\n"
      try machine.write("/etc/pam.d/x", text)
      guard
        let file = try? StackPlanner("x", in: directory).enable(StackOptions(enroll: false)).after
      else { continue }
      written += 1
      let after = String(decoding: file.bytes, as: UTF8.self)
      let stacks = [text, after].map { Stacks.parse("x", in: ["x": $0]) }
      for answers in answers(lines) {
        let isLet = stacks.map { lets($0, answers) }
        try #require(isLet[0] == isLet[1], "seed \(seed), \(answers):\n\(after)")
        if isLet[0] { admitted += 1 }
      }
    }
    #expect(written >= 20)
    #expect(admitted >= 100, "\(written) written, \(admitted) let in")
  }

  /// What the version before does not know would be a strict line there, or refuse everybody.
  @Test func `writes no word unasked that the first version does not know`() throws {
    let machine = try PamFiles([:])
    let directory = StackDirectory(root: machine.root)
    var seen: Set<String> = []
    for seed in 0..<150 {
      var random = RandomStack(seed: UInt64(seed), directory: "")
      let text =
        random.auth().joined(separator: "\n")
        + "\naccount required pam_unix.so\nsession required pam_unix.so\n"
      for service in ["x", "sshd", "gdm-password"] {
        try machine.write("/etc/pam.d/\(service)", text)
        guard
          let file = try? StackPlanner(service, in: directory).enable(StackOptions()).after
        else { continue }
        let after = String(decoding: file.bytes, as: UTF8.self)
        for line in after.split(separator: "\n") where line.contains("pam_sallyport.so") {
          let words = line.split(separator: " ").map(String.init)
          let module = try #require(words.firstIndex { $0.contains("pam_sallyport.so") })
          seen.formUnion(words[(module + 1)...])
        }
      }
    }
    #expect(!seen.isEmpty && seen.isSubset(of: ["enroll", "forward_pass"]), "\(seen)")
  }
}
