package import OneTimePassword
package import SallyportCore

extension UserNote {
  /// The text of a note's file. The level comes last: if the end of the file is lost, at any byte,
  /// there is no level and the file is refused, so that nobody passes because a line is missing.
  package func written(for user: UserName) -> Secret? {
    var text: [UInt8] = []
    if let uid {
      text = bytes(of: UserNote.heading) + decimalText(UInt64(uid)) + bytes(of: "\n")
    }
    if case .exempt(let until?) = level {
      text += bytes(of: UserNote.ending) + decimalText(UInt64(max(until.seconds, 0)))
      text += bytes(of: "\n")
    }
    text += bytes(of: "# Sallyport: change it with sallyport(1) only.\nversion = 1\nuser = ")
    text += user.bytes + bytes(of: "\nfrom = ")
    if case .required(let from?) = level {
      text += decimalText(UInt64(max(from.seconds, 0)))
    } else {
      text += bytes(of: "none")
    }
    text += bytes(of: "\nlevel = ")
    switch level {
    case nil, .exempt(until: .some): text += bytes(of: "none\n")
    case .required: text += bytes(of: "required\n")
    case .exempt: text += bytes(of: "exempt\n")
    }
    return Secret(text)
  }
}
