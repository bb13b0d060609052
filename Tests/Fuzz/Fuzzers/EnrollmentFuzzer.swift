import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// What reads as an enrollment keeps every rule and writes to a text that reads to the same;
  /// what does not gives a line of the text and a reason.
  // shows: damage
  static let enrollment = Fuzzer(name: "enrollment") { input in
    let enrollment: Enrollment
    do throws(SettingsError) {
      enrollment = try Enrollment.read(secret(input))
    } catch {
      must(isPlaced(error, in: input), "no line of the text: \(error)")
      return
    }
    keepsItsRules(enrollment)
    let text = unwrapped(enrollment.written(), "does not write")
    let again = succeeds("does not read what it wrote") { () throws(SettingsError) in
      try Enrollment.read(text)
    }
    must(same(enrollment, again), "reads another enrollment than it wrote")
    let twice = unwrapped(again.written(), "does not write")
    must(constantTimeEquals(text, twice), "writes it in two ways")
  }
}

/// Whether an error names a line that is there.
func isPlaced(_ error: SettingsError, in text: [UInt8]) -> Bool {
  let lines = text.count { $0 == UInt8(ascii: "\n") } + 1
  return (1...lines).contains(error.line) && error.problem != .outOfMemory
}

private func keepsItsRules(_ enrollment: Enrollment) {
  let authenticators = enrollment.authenticators
  must(enrollment.id != 0 && enrollment.created.seconds >= 0, "the head")
  must(UserName(enrollment.user.bytes) == enrollment.user, "the user's name")
  must((1...Enrollment.maximumAuthenticators).contains(authenticators.count), "how many")
  must(Set(authenticators.map(\.id)).count == authenticators.count, "an id twice")
  must(Set(authenticators.map(\.name.bytes)).count == authenticators.count, "a name twice")
  for authenticator in authenticators {
    must(authenticator.id != 0 && authenticator.created.seconds >= 0, "an authenticator")
    must(Label(authenticator.name.bytes) == authenticator.name, "its name")
    must((1...128).contains(authenticator.secret.count), "its secret's length")
  }
  let passes = enrollment.passes
  must(passes.count <= Pass.maximumOpen, "too many passes")
  must(Set(passes.map(\.id)).count == passes.count, "the id of a pass twice")
  for pass in passes {
    must(pass.id != 0 && pass.digest.count == 32 && pass.created.seconds >= 0, "a pass")
    must(Pass.usesRange.contains(UInt64(pass.uses)) && pass.expires.seconds >= 0, "its bounds")
  }
  guard let codes = enrollment.backupCodes else { return }
  must(codes.id != 0 && codes.salt.count == BackupCodeSet.saltLength, "the backup codes")
  must(codes.digests.count <= BackupCodeSet.maximumCodes, "too many backup codes")
  must(codes.digests.allSatisfy { $0.count == 32 }, "a digest's length")
}

private func same(_ a: Enrollment, _ b: Enrollment) -> Bool {
  a.id == b.id && a.user == b.user && a.uid == b.uid && a.created == b.created
    && a.backupCodes == b.backupCodes && a.passes == b.passes
    && a.authenticators.count == b.authenticators.count
    && zip(a.authenticators, b.authenticators).allSatisfy { same($0, $1) }
}

private func same(_ a: Authenticator, _ b: Authenticator) -> Bool {
  a.id == b.id && a.name == b.name && a.parameters == b.parameters
    && a.initialLastAccepted == b.initialLastAccepted && a.created == b.created
    && constantTimeEquals(a.secret, b.secret)
}
