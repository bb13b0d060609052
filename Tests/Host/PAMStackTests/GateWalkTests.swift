import Testing

@testable import PAMStack

/// Stacks whose included file lets a wrong password go on to our line.
@Suite struct `The gate in a walk` {
  private func fedora() throws -> PamFiles {
    let machine = try PamFiles([:], debian: false)
    try machine.lay("fedora")
    try machine.layGate()
    return machine
  }

  // shows: gate
  @Test func `is no success where nobody has said anything`() throws {
    let machine = try fedora()
    try machine.write(
      "/etc/pam.d/x",
      "auth required pam_krb5.so\n\(StackGate.line)\nauth required pam_sallyport.so nullok\n")
    let verdict = machine.stack("x").verdict(.auth) { entry in
      if entry.stopsWrongPassword { return .authenticationError }
      return entry.moduleName == "pam_permit" ? .success : .ignore
    }
    #expect(verdict == .permissionDenied)
  }

  @Test(arguments: ["pam_krb5.so", "pam_himmelblau.so"])
  func `says nothing for a module that its own file makes ignore a user`(module: String) throws {
    let machine = try fedora()
    try machine.write(
      "/etc/pam.d/x", "auth required \(module)\nauth required pam_sallyport.so\n")
    #expect(machine.analysis("x").differences.contains { $0.isCodeAlone })
  }

  // shows: gate
  @Test func `lets nobody in whom the stack refused without it`() throws {
    let machine = try fedora()
    // Nothing here says yes but pam_permit of the gate.
    try machine.write("/etc/pam.d/password-auth", "auth [default=ignore] pam_unix.so\n")
    try machine.write(
      "/etc/pam.d/x",
      "auth substack password-auth\n\(StackGate.line)\n"
        + "auth required pam_sallyport.so\n")
    let found = machine.analysis("x")
    #expect(found.findings.contains { $0.isCodeAlone })
    #expect(found.differences.contains { $0.isCodeAlone })
  }

  @Test func `is one of our lines where an earlier jump counts it`() throws {
    let machine = try fedora()
    let stack = """
      auth [success=2 default=ignore] pam_unix.so
      auth requisite pam_deny.so
      \(StackGate.line)
      auth required pam_sallyport.so

      """
    try machine.write("/etc/pam.d/x", stack)
    // The jump leads past the gate; what stood two lines further was the end.
    #expect(!machine.analysis("x").findings.contains(.notAsked))
    #expect(machine.analysis("x").asksEverybody)
  }
}
