import Testing

@testable import PAMStack

@Suite struct `The ends of a phase` {
  private func stack(_ text: String) -> ServiceStack {
    StackParser.parse(
      service: "sudo", .debian(.before16) { $0 == "/etc/pam.d/sudo" ? Array(text.utf8) : nil })
  }

  // decisive
  @Test func `are libpam's verdict where each answer is known`() {
    for seed: UInt64 in 1...300 {
      var random = RandomStack(seed: seed, directory: "/etc/pam.d")
      let files = Dictionary(uniqueKeysWithValues: random.files().map { ("/etc/pam.d/\($0)", $1) })
      let stack = StackParser.parse(
        service: "service", .debian(.before16) { path in files[path].map { Array($0.utf8) } })
      for code in [PAMCode.success, .authenticationError, .ignore, .newPasswordRequired] {
        let ends = stack.ends(of: .auth, from: 0) { _, count in [(code, count + 1)] }
        #expect(ends?.map(\.verdict) == [stack.verdict(.auth) { _ in code }], "seed \(seed)")
        #expect(ends?.first?.doubt == nil)
      }
    }
  }

  @Test func `are told apart by the first module that may answer either way`() throws {
    let stack = stack("auth required pam_a.so\nauth sufficient pam_b.so\nauth required pam_c.so\n")
    let ends = try #require(
      stack.ends(of: .auth, from: [String]()) { entry, seen in
        let names = seen + [entry.moduleName]
        return entry.moduleName == "pam_b"
          ? [(.success, names), (.ignore, names)] : [(.success, names)]
      })
    #expect(ends.map(\.verdict) == [.success, .success])
    #expect(Set(ends.map(\.state)) == [["pam_a", "pam_b"], ["pam_a", "pam_b", "pam_c"]])
    #expect(ends.allSatisfy { $0.doubt?.moduleName == "pam_b" })
  }

  @Test func `are not known where there are too many`() {
    let stack = stack(String(repeating: "auth required pam_a.so\n", count: 10))
    #expect(
      stack.ends(of: .auth, from: ()) { _, _ in [(.success, ()), (.authenticationError, ())] }
        == nil)
    let few = stack.ends(of: .auth, from: (), most: 2000) { _, _ in
      [(.success, ()), (.authenticationError, ())]
    }
    #expect(few?.count == 1024)
  }
}
