package import OneTimePassword
package import SallyportCore

extension BackupCodeSet {
  /// New backup codes, to be shown once, and their digests to store; no set if `count` is 0 and
  /// there are no scratch codes. `scratchCodes` are those of another module, which are stored with
  /// them.
  package static func fresh(count: Int, scratchCodes: [Secret] = []) throws(StoreTrouble) -> (
    codes: [Secret], set: BackupCodeSet?
  ) {
    let secret = try Random.secret(count: saltLength)
    let salt = secret.bytes(in: 0..<secret.count)
    var codes: [Secret] = []
    for _ in 0..<count { codes.append(try freshCode()) }
    if codes.isEmpty && scratchCodes.isEmpty { return ([], nil) }
    return (
      codes,
      BackupCodeSet(
        id: try Random.identifier(), salt: salt, digests: try digests(of: codes, salt),
        scratchDigests: try digests(of: scratchCodes, salt))
    )
  }

  @inline(never) private static func digests(of codes: [Secret], _ salt: [UInt8])
    throws(StoreTrouble) -> [[UInt8]]
  {
    var digests: [[UInt8]] = []
    for code in codes {
      do throws(CryptoError) {
        digests.append(try BackupCode.digest(code, salt: salt))
      } catch {
        throw .crypto(error)
      }
    }
    return digests
  }

  /// One code. One in 10⁸ has to be made again; twenty in a row mean that memory is short.
  private static func freshCode() throws(StoreTrouble) -> Secret {
    for _ in 0..<20 {
      let random = try Random.secret(count: BackupCode.randomBytes)
      if let code = BackupCode.make(from: random) { return code }
    }
    throw .outOfMemory
  }
}

extension Pass {
  /// A new pass, and its code, to be shown once.
  package static func fresh(
    of enrollmentID: UInt64, from now: UnixTime, for seconds: UInt64, uses: UInt8,
    enrolls: Bool = false
  )
    throws(StoreTrouble) -> (code: Secret, pass: Pass)
  {
    guard let code = Pass.code(from: try Random.secret(count: BackupCode.randomBytes)) else {
      throw .outOfMemory
    }
    let digest: [UInt8]
    do throws(CryptoError) {
      digest = try Pass.digest(code, of: enrollmentID)
    } catch {
      throw .crypto(error)
    }
    let pass = Pass(
      id: try Random.identifier(), digest: digest, created: now,
      expires: UnixTime(now.seconds + Int64(seconds)), uses: uses, enrolls: enrolls)
    return (code, pass)
  }
}
