package import SallyportCore

extension Act {
  /// How a change of an enrollment is told.
  package static func told(_ change: EnrollmentChange) -> (verb: Verb, facts: [Fact]) {
    switch change {
    case .create(let enrollment): (.enroll, named(enrollment.authenticators.map(\.name)))
    case .add(let made, let codes):
      (.add, named(made.map(\.name)) + (codes.map { backupCodes($0.count) } ?? []))
    case .remove(let name): (.remove, named([name]))
    case .rename(let name, let new): (.rename, named([name]) + [Fact("new", new.bytes)])
    case .renew(let codes): (.backupCodes, backupCodes(codes.count))
    case .give(let pass):
      (
        .pass,
        [pass.enrolls ? Fact("enrolls", "yes".utf8) : Fact("uses", "\(pass.uses)".utf8)]
          + (pass.expires.internetText.map { [Fact("until", $0.utf8)] } ?? [])
      )
    case .revoke: (.revoke, [])
    // A login alone does it.
    case .replace(let made, let codes, _):
      (.enroll, named(made.map(\.name)) + (codes.map { backupCodes($0.count) } ?? []))
    }
  }

  package static func named(_ names: [Label]) -> [Fact] {
    names.map { Fact("authenticator", $0.bytes) }
  }

  private static func backupCodes(_ count: Int) -> [Fact] {
    [Fact("backup-codes", "\(count)".utf8)]
  }
}
