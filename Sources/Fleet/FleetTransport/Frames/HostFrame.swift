package import OneTimePassword
package import SallyportCore

/// The body of a question of a host: a frame as programs send it to the service of a host, with
/// what the verifier has to know besides. In front are the form (1 byte, 2), whether a local login
/// is the user's own (1 or 0), the uid of the account on the host, and the real uid of who called
/// (4 bytes each, little-endian; 0xffffffff where there is none). Which host it is, its key says.
extension LoginQuestion {
  private static let form = 2
  private static let headLength = 10

  /// nil where the question does not fit, or memory is short.
  package func hostFrame() -> Secret? {
    guard let frame = encoded() else { return nil }
    var head = ByteWriter(count: Self.headLength)
    head.put(count: Self.form)
    head.put(isThere: isOwn)
    for uid in [account?.uid, caller] { head.put(UInt64(uid ?? UInt32.max), bytes: 4) }
    var body = SecretText(capacity: Self.headLength + frame.count)
    for byte in head.bytes { body.put(byte) }
    body.add(frame)
    return body.finish()
  }

  /// Any bytes give a question, or nil.
  package static func decode(hostFrame body: Secret) -> LoginQuestion? {
    var head = ByteReader(body.bytes(in: 0..<headLength), 0..<headLength)
    guard head.number(bytes: 1) == form else { return nil }
    let (isOwn, uid, caller) = (head.isThere(), head.uid(), head.uid())
    guard head.isWhole, body.count > headLength,
      let frame = body.slice(headLength..<body.count), var question = decode(frame)
    else { return nil }
    question.account = UserName(question.name).map { Account(name: $0, uid: uid) }
    (question.isOwn, question.caller) = (isOwn, caller)
    return question
  }
}

extension ByteReader {
  fileprivate mutating func uid() -> UInt32? {
    let uid = UInt32(truncatingIfNeeded: number(bytes: 4))
    return uid == UInt32.max ? nil : uid
  }
}
