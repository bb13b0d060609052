import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport

/// An authenticator whose app read its QR code and computes what is usual.
struct IgnoredByApp: Equatable {
  let name: Label
  /// Whether the person has no other one.
  let isOnly: Bool

  func message(at invocation: Invocation) -> Message {
    let text =
      "wrong code: the app of \"\(name.text)\" ignores what its QR code says, and computes SHA-1 "
      + "with 30 s and 6 digits"
    guard !isOnly else {
      let again = invocation.command("enroll", "--force", remark: "with the defaults")
      return Message(text, .refused, hints: [again])
    }
    let word = shellQuoted(name.text)
    return Message(
      text, .refused,
      hints: [
        invocation.command("remove", word),
        invocation.command("add", word, remark: "with the defaults"),
      ])
  }
}

extension Person {
  /// The authenticator whose app all of these codes are of, if it ignores what it was told. nil for
  /// a person in the fleet, whose secrets are not here, and where the codes would be the last
  /// digits of right ones, which nobody is told. For root: a login never computes it.
  func ignored(byAppOf typed: [Secret], named name: Label? = nil) throws(CommandError)
    -> IgnoredByApp?
  {
    guard !isInFleet else { return nil }
    let now = try context.time()
    let enrolled = try enrolledRecord().enrollment.authenticators
    for one in enrolled where name == nil || name == one.name {
      let usual = CodeParameters.standard
      let (type, algorithm) = (one.parameters.type, one.parameters.algorithm)
      if type == usual.type, algorithm == usual.algorithm { continue }
      var isIgnored = !typed.isEmpty
      for code in typed where isIgnored {
        isIgnored = try computing { () throws(CryptoError) in
          try one.isIgnored(byAppOf: code, of: account.name, at: now, under: policy)
        }
      }
      if isIgnored { return IgnoredByApp(name: one.name, isOnly: enrolled.count == 1) }
    }
    return nil
  }
}

extension CommandError {
  /// The codes are of an app that ignores what it was told.
  static func ignored(_ found: IgnoredByApp) -> CommandError {
    CommandError { found.message(at: $0) }
  }
}
