package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// An authenticator that is being made: its owner is shown it, and it is not stored before a first
/// code was right, where one is asked for.
package struct Draft: Sendable {
  package let user: UserName
  /// As it is stored where no first code is asked for.
  package let authenticator: Authenticator
  /// Who runs the machine, for the authenticator app.
  package let issuer: Label
  /// Whose account it is, for the app.
  package let account: Label

  /// `account`: nil for the user's name. `ending`: of that name.
  @inline(never)
  package init(
    for user: UserName, named name: Label, _ parameters: CodeParameters, secret: Secret,
    issuer: Label, account: Label? = nil, ending: [UInt8] = [], at now: UnixTime,
    clockOffset: Int32? = nil
  ) throws(StoreTrouble) {
    (self.user, self.issuer) = (user, issuer)
    self.account = account ?? Draft.account(of: user, ending)
    authenticator = Authenticator(
      id: try Random.identifier(), name: name, parameters: parameters, secret: secret,
      initialLastAccepted: nil, created: now, clockOffset: clockOffset)
  }

  /// A name that is too long for a label is cut, and one that cannot be shown is written in %XX:
  /// two accounts of a machine must not look alike to an app.
  private static func account(of user: UserName, _ ending: [UInt8]) -> Label {
    let length = Label.maximumLength - ending.count
    return Label([UInt8](user.bytes.prefix(length)) + ending)
      ?? Label([UInt8](escaped(user.bytes).prefix(length)) + ending) ?? Label("user")
  }

  /// As an authenticator app takes it; an HOTP starts at counter 0.
  package var uri: OtpauthURI {
    OtpauthURI(
      issuer: issuer.bytes, account: account.bytes, secret: authenticator.secret,
      parameters: authenticator.parameters)
  }

  /// The same for a smaller QR code, which has the machine behind the account. Of a TOTP it has at
  /// most 78 bytes where the account has few: a code of 33 modules on a side.
  package var narrowURI: OtpauthURI {
    let room = 22 - account.bytes.count
    let machine = room > 0 ? [UInt8(ascii: "@")] + issuer.bytes.prefix(room) : []
    return OtpauthURI(
      issuer: [], account: account.bytes + machine, secret: authenticator.secret,
      parameters: authenticator.parameters)
  }

  /// Verifies the first code, in the window that logins accept.
  package func verify(firstCode typed: Secret, at now: UnixTime, under policy: Policy)
    throws(StoreTrouble) -> FirstCode
  {
    do throws(CryptoError) {
      return try SallyportCore.verify(
        firstCode: typed, of: authenticator, for: user, at: now, under: policy)
    } catch {
      throw .crypto(error)
    }
  }
}

extension Authenticator {
  /// With its first code used up, as that showed it; nil: none was asked for.
  package func confirmed(by first: AuthenticatorState?) -> Authenticator {
    Authenticator(
      id: id, name: name, parameters: parameters, secret: secret,
      initialLastAccepted: first?.lastAccepted, created: created,
      clockOffset: first?.clock?.offset ?? clockOffset)
  }
}

/// A name for a new authenticator that is not among `taken`: `phone`, `phone-2` …; of one that
/// counts, `counter`.
package func freeName(for type: AuthenticatorType, beside taken: [Label]) -> Label {
  let usual: Label =
    switch type {
    case .totp: Label("phone")
    case .hotp: Label("counter")
    }
  return freeName(like: usual, beside: taken)
}

/// The same of `usual`, `usual-2` …
package func freeName(like usual: Label, beside taken: [Label]) -> Label {
  var (name, number) = (usual, UInt64(2))
  while taken.contains(where: { $0 == name }), number < 100 {
    name = Label(usual.bytes + [UInt8(ascii: "-")] + decimalText(number)) ?? usual
    number += 1
  }
  return name
}
