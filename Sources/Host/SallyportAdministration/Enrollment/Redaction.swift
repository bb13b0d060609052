import OneTimePassword
package import SallyportCore

extension Enrollment {
  /// As it is, but with zeros for each secret, and numbers for salt and digests of the backup
  /// codes. nil when out of memory.
  package var withoutSecrets: Enrollment? {
    var blank: [Authenticator] = []
    for one in authenticators {
      guard let zeros = Secret(count: one.secret.count) else { return nil }
      blank.append(
        Authenticator(
          id: one.id, name: one.name, parameters: one.parameters, secret: zeros,
          initialLastAccepted: one.initialLastAccepted, created: one.created,
          clockOffset: one.clockOffset))
    }
    return Enrollment(
      id: id, user: user, uid: uid, created: created, authenticators: blank,
      backupCodes: backupCodes?.withoutDigests, passes: passes.map(\.withoutDigest),
      suspended: suspended)
  }
}

extension Enrollment {
  /// The same, of an account with this uid; nil: of any.
  package func with(uid: UInt32?) -> Enrollment {
    Enrollment(
      id: id, user: user, uid: uid, created: created, authenticators: authenticators,
      backupCodes: backupCodes, passes: passes, suspended: suspended)
  }
}

extension Pass {
  fileprivate var withoutDigest: Pass {
    Pass(
      id: id, digest: [UInt8](repeating: 0, count: digest.count), created: created,
      expires: expires, uses: uses, enrolls: enrolls)
  }
}

extension BackupCodeSet {
  fileprivate var withoutDigests: BackupCodeSet {
    func numbers(_ kind: UInt8, _ digests: [[UInt8]]) -> [[UInt8]] {
      digests.enumerated().map { index, digest in
        var number = [UInt8](repeating: kind, count: digest.count)
        if !number.isEmpty { number[0] = UInt8(truncatingIfNeeded: index) }
        return number
      }
    }
    return BackupCodeSet(
      id: id, salt: [UInt8](repeating: 0, count: salt.count), digests: numbers(0, digests),
      scratchDigests: numbers(1, scratchDigests))
  }
}
