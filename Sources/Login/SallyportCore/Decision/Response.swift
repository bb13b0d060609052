package import OneTimePassword

/// The classified response.
package enum Response: Sendable {
  /// As many digits as one of the user's authenticators or scratch codes has.
  case code(UInt32, Digits)
  /// A backup code, as its digest with the salt of the user's set, computed before the lock is
  /// taken.
  case backupCode(digest: [UInt8])
  /// A pass, as its digest.
  case pass(digest: [UInt8])
  case malformed(Malformation)
}

/// Why a response is neither a code nor a backup code. It costs nothing, as it cannot be correct.
package enum Malformation: UInt8, CaseIterable, Sendable {
  case empty
  case tooLong
  /// Only digits, but not as many as any code of the user has.
  case length
  case characters
  /// What sshd sends instead of the response if it forbids the user (root) to log in.
  case sshdDummy
  /// What was typed before in the same transaction, mostly the password.
  case again
}

extension Response {
  /// In bytes: the longest response that libpam accepts (PAM_MAX_RESP_SIZE).
  package static let maximumLength = 512

  /// Classifies a response. Blanks and dashes are ignored, and decimal digits of any writing count
  /// as what they mean.
  ///
  /// The enrollment has the lengths of codes and the salt of backup codes. If there is no set, the
  /// same work is done with another salt.
  package static func classify(_ typed: Secret, for enrollment: Enrollment)
    throws(CryptoError) -> Response
  {
    switch try form(of: typed, hasCodes: enrollment.hasCodes(of:)) {
    case .code(let code, let digits): return .code(code, digits)
    case .malformed(let malformation): return .malformed(malformation)
    case .backupCode(let code):
      let salt =
        enrollment.backupCodes?.salt ?? [UInt8](repeating: 0, count: BackupCodeSet.saltLength)
      return .backupCode(digest: try BackupCode.digest(code, salt: salt))
    case .pass(let code): return .pass(digest: try Pass.digest(code, of: enrollment.id))
    }
  }

  /// Why the response cannot be a code or a backup code of such an enrollment, correct or not; nil
  /// if it can.
  package static func malformation(of typed: Secret, for shape: Shape) throws(CryptoError)
    -> Malformation?
  {
    switch try form(of: typed, hasCodes: shape.hasCodes(of:)) {
    case .code, .backupCode, .pass: nil
    case .malformed(let malformation): malformation
    }
  }

  private enum Form {
    case code(UInt32, Digits)
    case backupCode(Secret)
    case pass(Secret)
    case malformed(Malformation)
  }

  private static func form(of typed: Secret, hasCodes: (Digits) -> Bool) throws(CryptoError)
    -> Form
  {
    if typed.count == 0 { return .malformed(.empty) }
    if typed.count > maximumLength { return .malformed(.tooLong) }
    if isSSHDDummy(typed) { return .malformed(.sshdDummy) }
    guard let bare = plain(typed) else { throw .outOfMemory }
    if bare.count == 0 { return .malformed(.empty) }
    if let value = number(bare) {
      guard let digits = UInt8(exactly: bare.count).flatMap(Digits.init(rawValue:)),
        hasCodes(digits)
      else { return .malformed(.length) }
      return .code(value, digits)
    }
    guard let code = normalized(bare) else { return .malformed(.characters) }
    return code.count == BackupCode.length ? .backupCode(code) : .pass(code)
  }

  /// Splits a password and a code typed into one field. The code is a backup code or a pass with
  /// its hyphens, or the longest run of digits at the end that has the length of an authenticator's
  /// codes. nil if there is no code.
  package static func split(_ typed: Secret, hasCodes: (_ digits: Digits) -> Bool) -> (
    password: Secret, code: Secret
  )? {
    let end = trimmedEnd(typed)
    if isGrouped(typed, groupedLength, end: end) { return cut(typed, groupedLength, end) }
    if isGrouped(typed, groupedPass, end: end) { return cut(typed, groupedPass, end) }
    let (width, count) = digits(typed, before: end)
    var length = Int(Digits.eight.rawValue)
    while let digits = Digits(rawValue: UInt8(truncatingIfNeeded: length)) {
      if length <= count, hasCodes(digits) { return cut(typed, length * width, end) }
      length -= 1
    }
    return nil
  }

  /// The digits of one writing that end there, up to eight: the bytes of each, and how many.
  private static func digits(_ typed: Secret, before end: Int) -> (width: Int, count: Int) {
    for width in 1...4 where end >= width {
      let last = TypedCharacter(typed, at: end - width)
      guard last.length == width, case .digit(_, let script) = last.meaning else { continue }
      var count = 1
      while count < 8, end >= (count + 1) * width,
        case .digit(_, script) = TypedCharacter(typed, at: end - (count + 1) * width).meaning
      {
        count += 1
      }
      return (width, count)
    }
    return (1, 0)
  }

  private static func cut(_ typed: Secret, _ length: Int, _ end: Int) -> (
    password: Secret, code: Secret
  )? {
    guard let password = typed.slice(0..<end - length), let code = typed.slice(end - length..<end)
    else { return nil }
    return (password, code)
  }

  @inline(never) private static func areDigits(_ typed: Secret, _ range: Range<Int>) -> Bool {
    for index in range where !isDigit(typed[index]) { return false }
    return true
  }

  private static let groupedLength = BackupCode.length + 3
  private static let groupedPass = PassCode.length + 4

  private static func trimmedEnd(_ typed: Secret) -> Int {
    var end = typed.count
    while let width = (1...3).first(where: { isBlank(typed, end - $0, width: $0) }) {
      end -= width
    }
    return end
  }

  private static func isBlank(_ typed: Secret, _ index: Int, width: Int) -> Bool {
    let character = TypedCharacter(typed, at: index)
    return index >= 0 && character.length == width && character.meaning == .blank
  }

  /// A backup code, or a pass, which has one more character in a group of its own.
  private static func isGrouped(_ typed: Secret, _ length: Int, end: Int) -> Bool {
    guard end >= length else { return false }
    let start = end - length
    return (0..<length).allSatisfy { offset in
      let byte = typed[start + offset]
      return offset % 5 == 4 ? byte == hyphen : BackupCode.normalized(byte) != nil
    } && (length == groupedLength || BackupCode.normalized(typed[start]) == PassCode.first)
  }

  private static let hyphen = UInt8(ascii: "-")

  /// sshd fills the length of the real response with this text, over and over.
  private static func isSSHDDummy(_ typed: Secret) -> Bool {
    let dummy: StaticString = "\u{8}\n\r\u{7f}INCORRECT"
    return (0..<typed.count).allSatisfy { index in
      // SAFETY: the remainder is below the length of the text.
      unsafe typed[index] == dummy.utf8Start[index % dummy.utf8CodeUnitCount]
    }
  }

  /// Without blanks and dashes, and with digits in ASCII. nil if out of memory.
  private static func plain(_ typed: Secret) -> Secret? {
    guard let bare = Secret(count: typed.count) else { return nil }
    var (index, count) = (0, 0)
    while index < typed.count {
      let character = TypedCharacter(typed, at: index)
      switch character.meaning {
      case .digit(let value, script: _): bare.set(count, to: UInt8(ascii: "0") &+ value)
      case .other: bare.set(count, to: typed[index])
      case .blank, .dash: count -= 1
      }
      (index, count) = (index + character.length, count + 1)
    }
    return bare.slice(0..<count)
  }

  /// The value of up to nine digits; 0 for more, as no code is that long; nil for anything but
  /// digits.
  private static func number(_ bare: Secret) -> UInt32? {
    guard areDigits(bare, 0..<bare.count) else { return nil }
    guard bare.count <= 9 else { return 0 }
    var number: UInt32 = 0
    for index in 0..<bare.count { number = number * 10 + UInt32(bare[index] & 15) }
    return number
  }

  /// A backup code or a pass; nil if it is neither.
  private static func normalized(_ bare: Secret) -> Secret? {
    let isPass = bare.count == PassCode.length && BackupCode.normalized(bare[0]) == PassCode.first
    guard isPass || bare.count == BackupCode.length else { return nil }
    guard let code = Secret(count: bare.count) else { return nil }
    for position in 0..<bare.count {
      guard let character = BackupCode.normalized(bare[position]) else { return nil }
      // SAFETY: `code` is as long as `bare`.
      unsafe code.withMutableBytes { unsafe $0[position] = character }
    }
    return code
  }
}
