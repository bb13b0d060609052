import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// The first byte chooses what is enrolled and used up, the rest is typed. What is accepted is a
  /// right, unused code and nothing else, by a second opinion; what is malformed changes nothing.
  // shows: odd-response, digits
  static let response = Fuzzer(name: "response") { input in
    var input = Input(input)
    let user = Owner(input.byte())
    let typed = input.remaining()
    let response = succeeds("classifying") { () throws(CryptoError) in
      try Response.classify(secret(typed), for: user.enrollment)
    }
    let decision = succeeds("deciding") { () throws(CryptoError) in
      try decide(
        on: response, enrollment: user.enrollment, state: user.state, from: .unknown,
        through: nil, at: Owner.now, under: Policy())
    }
    let bare = plain(typed)
    switch (response, decision.verdict) {
    case (.malformed, .refuse(.malformed)):
      must(decision.state == user.state, "a malformed response costs something")
      must(
        !user.mayBeRight(bare) || typed.count > Response.maximumLength, "a good code is malformed")
    case (.malformed, _): must(false, "a malformed response was verified")
    case (_, .accept): must(user.isRight(bare), "accepted what is not right")
    case (_, .refuse): must(!user.isRight(bare), "refused what is right")
    }
    splits(typed, user)
  }
}

/// One field for password and code: the parts are the whole, and the code is one by its form.
private func splits(_ typed: [UInt8], _ user: Owner) {
  let lengths = user.enrollment.authenticators.map(\.parameters.digits)
  guard let parts = Response.split(secret(typed), hasCodes: lengths.contains) else { return }
  let whole = bytes(parts.password) + bytes(parts.code)
  must(typed.starts(with: whole), "the parts are not what was typed")
  let left = typed.dropFirst(whole.count)
  must(plain(Array(left)).isEmpty, "something was lost in splitting")
  must(user.mayBeRight(plain(bytes(parts.code))), "the code part is no code")
}

/// By the standard library's tables: without blanks and dashes, digits in ASCII. No UTF-8 stays.
private func plain(_ typed: [UInt8]) -> [UInt8] {
  let ignored: [ClosedRange<UInt32>] = [
    0x09...0x09, 0x0d...0x0d, 0x20...0x20, 0x2d...0x2d, 0xa0...0xa0, 0xad...0xad,
    0x61c...0x61c, 0x2000...0x2015, 0x202a...0x202f, 0x205f...0x2069, 0x2212...0x2212,
    0x3000...0x3000, 0xfeff...0xfeff, 0xff0d...0xff0d,
  ]
  guard let text = String(validating: typed, as: UTF8.self) else {
    return typed.filter { byte in !ignored.contains { $0.contains(UInt32(byte)) } || byte >= 0x80 }
  }
  return text.unicodeScalars.flatMap { scalar -> [UInt8] in
    if ignored.contains(where: { $0.contains(scalar.value) }) { return [] }
    let isDigit = scalar.properties.numericType == .decimal
    let value = isDigit ? Character(scalar).wholeNumberValue : nil
    return value.map { [UInt8($0) + 0x30] } ?? Array(String(scalar).utf8)
  }
}

/// A user who logs in, with codes that are known here.
private struct Owner {
  static let now = UnixTime(1_700_000_000)
  private static let key = Array("12345678901234567890".utf8)
  private static let backupCodes = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]
  private static let salt = [UInt8](0..<16)
  private static let passCode = "P7KMF2X9QD4TW0HZA"

  let enrollment: Enrollment
  let state: LoginState
  private let usedCodes: UInt64

  init(_ choice: UInt8) {
    let all: [CodeParameters?] = [
      .standard,
      CodeParameters(type: .hotp, algorithm: .sha1, digits: .eight),
      CodeParameters(type: .totp(period: 60), algorithm: .sha256, digits: .seven),
    ]
    var chosen = all.enumerated().filter { choice >> $0.offset & 1 == 1 }.compactMap(\.element)
    if chosen.isEmpty { chosen = [.standard] }
    enrollment = Enrollment(
      id: 7, user: unwrapped(UserName(Array("alice".utf8)), "a name"), uid: nil, created: Self.now,
      authenticators: chosen.enumerated().map { Self.authenticator(UInt64($0.offset), $0.element) },
      backupCodes: choice & 8 == 0 ? nil : Self.codeSet,
      passes: choice & 32 == 0 ? [] : [Self.pass])
    var state = LoginState(initialFor: enrollment)
    if !state.passes.isEmpty {
      // Each attempt takes down the time, also a malformed one.
      state.passes[0] = PassState(id: 5, used: choice & 64 == 0 ? 0 : 1, seen: Self.now)
    }
    if choice & 16 != 0 { state.backupCodes?.used = 1 }
    usedCodes = state.backupCodes?.used ?? 0
    self.state = state
  }

  private static func authenticator(
    _ index: UInt64, _ parameters: CodeParameters
  ) -> Authenticator {
    Authenticator(
      id: index + 1, name: unwrapped(Label(Array("phone \(index)".utf8)), "a name"),
      parameters: parameters, secret: secret(key),
      initialLastAccepted: parameters.type == .hotp ? 4 : 56_666_662, created: now)
  }

  private static let pass = Pass(
    id: 5,
    digest: succeeds("a digest") { () throws(CryptoError) in
      try Pass.digest(secret(Array(passCode.utf8)), of: 7)
    }, created: now, expires: UnixTime(now.seconds + 600), uses: 1)

  private static let codeSet = BackupCodeSet(
    id: 9, salt: salt,
    digests: backupCodes.map { code in
      succeeds("a digest") { () throws(CryptoError) in
        try BackupCode.digest(secret(Array(code.utf8)), salt: salt)
      }
    })

  /// Whether a text without blanks and hyphens has the form of a code.
  func mayBeRight(_ bare: [UInt8]) -> Bool {
    if bare.allSatisfy({ (0x30...0x39).contains($0) }) {
      return enrollment.authenticators.contains {
        Int($0.parameters.digits.rawValue) == bare.count
      }
    }
    return Self.backupCode(bare) != nil || Self.isPass(bare)
  }

  /// Whether it is a code of now, above the last one that was accepted, an unused backup code, or
  /// the pass.
  func isRight(_ bare: [UInt8]) -> Bool {
    if Self.isPass(bare) {
      let code = Self.letters(bare)
      return state.passes.contains { $0.used == 0 } && code == Array(Self.passCode.utf8)
    }
    if let code = Self.backupCode(bare), let set = enrollment.backupCodes {
      return Self.backupCodes.indices.contains {
        set.digests.count > $0 && usedCodes >> UInt64($0) & 1 == 0
          && Array(Self.backupCodes[$0].utf8) == code
      }
    }
    return enrollment.authenticators.contains { Self.goodCodes(of: $0).contains(bare) }
  }

  private static func goodCodes(of authenticator: Authenticator) -> [[UInt8]] {
    let last = authenticator.initialLastAccepted ?? 0
    let positions: ClosedRange<UInt64>
    switch authenticator.parameters.type {
    case .hotp: positions = last + 1...last + 11
    case .totp(let period):
      let step = UInt64(now.seconds) / UInt64(period)
      positions = max(step - 5, last + 1)...max(step + 5, last + 1)
    }
    let (digits, algorithm) = (authenticator.parameters.digits, authenticator.parameters.algorithm)
    return succeeds("codes") { () throws(CryptoError) in
      let generator = try CodeGenerator(
        secret: authenticator.secret, algorithm: algorithm, digits: digits)
      var codes: [[UInt8]] = []
      for position in positions {
        let padded = String(try generator.code(at: position) + digits.modulus).utf8.dropFirst()
        codes.append(Array(padded))
      }
      return codes
    }
  }

  /// nil for what is no backup code.
  private static func backupCode(_ bare: [UInt8]) -> [UInt8]? {
    guard bare.count == 16, bare.contains(where: { !(0x30...0x39).contains($0) }) else {
      return nil
    }
    return letters(bare)
  }

  private static func isPass(_ bare: [UInt8]) -> Bool {
    bare.count == 17 && letters(bare)?.first == UInt8(ascii: "P")
  }

  /// Crockford's letters, as forgiving as the manual says; nil for others.
  private static func letters(_ bare: [UInt8]) -> [UInt8]? {
    let text = String(decoding: bare, as: UTF8.self).uppercased()
      .replacing("O", with: "0").replacing("I", with: "1").replacing("L", with: "1")
    let all = Set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    guard bare.allSatisfy({ $0 < 0x80 }), text.allSatisfy(all.contains) else { return nil }
    return Array(text.utf8)
  }
}
