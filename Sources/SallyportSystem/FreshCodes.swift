package import OneTimePassword
package import SallyportCore

extension BackupCodeSet {
  /// New backup codes, to be shown once, and what is kept of them; no set for none.
  package static func fresh(count: Int) throws(StoreTrouble) -> (
    codes: [Secret], set: BackupCodeSet?
  ) {
    let salt = try Random.secret(count: saltLength)
    let salted = salt.bytes(in: 0..<salt.count)
    var (codes, digests): ([Secret], [[UInt8]]) = ([], [])
    for _ in 0..<count {
      let code = try freshCode()
      codes.append(code)
      do throws(CryptoError) {
        digests.append(try BackupCode.digest(code, salt: salted))
      } catch {
        throw .crypto(error)
      }
    }
    let id = try Random.identifier()
    return (codes, count > 0 ? BackupCodeSet(id: id, salt: salted, digests: digests) : nil)
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
