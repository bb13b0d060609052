package import OneTimePassword
package import SallyportCore

/// The body of a question of a host: a frame as programs send it to the service of a host, with
/// what the verifier has to know besides. In front are the form (1 byte, 2), whether a local login
/// is the user's own (1 or 0), the uid of the account on the host, and the real uid of who called
/// (4 bytes each, little-endian; 0xffffffff where there is none). Which host it is, its key says.
extension LoginQuestion {
  private static let form: UInt8 = 2

  /// nil where the question does not fit, or memory is short.
  package func hostFrame() -> Secret? {
    guard let frame = encoded() else { return nil }
    var fields = Fields(writing: 10 + frame.count)
    _ = Self.pass(self, as: frame, &fields)
    return fields.written
  }

  /// Any bytes give a question, or nil.
  package static func decode(hostFrame body: Secret) -> LoginQuestion? {
    var fields = Fields(reading: body)
    return pass(nil, as: nil, &fields)
  }

  /// `frame`: the program's.
  private static func pass(_ question: Self?, as frame: Secret?, _ fields: inout Fields) -> Self? {
    fields.constant(form)
    let isOwn = fields.bit(question?.isOwn)
    let uid = fields.uid(question.map { $0.account?.uid })
    let caller = fields.uid(question.map { $0.caller })
    guard let frame = fields.rest(frame), fields.isWhole,
      var read = question ?? decode(frame)
    else { return nil }
    read.account = UserName(read.name).map { Account(name: $0, uid: uid) }
    (read.isOwn, read.caller) = (isOwn, caller)
    return read
  }
}

extension Fields {
  /// Outside nil: to be read.
  fileprivate mutating func uid(_ value: UInt32??) -> UInt32? {
    let uid = number(value.map { $0 ?? UInt32.max })
    return uid == UInt32.max ? nil : uid
  }
}
