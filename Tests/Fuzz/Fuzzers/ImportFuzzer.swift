import OneTimePassword
import SallyportImport

extension Fuzzer {
  /// A user's `.google_authenticator`: what is taken is within every range, what is not has its
  /// line; a comment line behind everything changes nothing.
  static let googleAuthenticator = Fuzzer(name: "google-authenticator") { input in
    let file: GoogleAuthenticatorFile
    do throws(LineProblem) {
      file = try GoogleAuthenticatorFile.parse(secret(input))
    } catch {
      must(isLine(error.line, of: input) && error.problem != .outOfMemory, "\(error)")
      return
    }
    must(
      !bytes(file.secret).isEmpty && input.count <= GoogleAuthenticatorFile.longest, "a secret")
    must((1...100).contains(file.window), "a window of \(file.window)")
    switch file.kind {
    case .totp(let period): must(CodeParameters.periods.contains(period), "\(period) s")
    case .hotp(let next): must(next > 0, "an HOTP that has not begun")
    }
    for code in file.scratchCodes {
      let digits = bytes(code)
      must(digits.count == 8 && digits.allSatisfy { (0x30...0x39).contains($0) }, "no code")
      must(digits.first != 0x30, "a scratch code that the other module does not take")
    }
    let distinct = Set(file.scratchCodes.map { bytes($0) })
    must(distinct.count == file.scratchCodes.count, "a scratch code twice")
    agrees(file, input)
  }

  /// A users file of pam_oath: each line alone says what it says among the others.
  static let usersOath = Fuzzer(name: "users-oath") { input in
    let lines = UsersOath(secret(input)).lines
    var last = 0
    for line in lines {
      must(isLine(line.number, of: input) && line.number > last, "line \(line.number)")
      last = line.number
      switch line.token {
      case .success(let token):
        must(token.key.count <= UsersOathToken.longestKey, "a key of \(token.key.count) bytes")
        let alone = UsersOath(secret(text(line.number, of: input))).lines
        guard alone.count == 1, case .success(let again) = alone[0].token else {
          return must(false, "line \(line.number) alone reads otherwise")
        }
        must(
          again.type == token.type && again.digits == token.digits
            && again.counter == token.counter && again.lastCode == token.lastCode
            && constantTimeEquals(again.key, token.key) && alone[0].user == line.user,
          "line \(line.number) alone says something else")
      case .failure(let problem): must(problem != .outOfMemory, "out of memory")
      }
    }
  }

  /// A list of otpauth URIs, of one user or of many.
  static let uriList = Fuzzer(name: "uri-list") { input in
    for isOneUsers in [false, true] {
      var last = 0
      for line in URIList(secret(input), isOneUsers: isOneUsers).lines {
        must(isLine(line.number, of: input) && line.number > last, "line \(line.number)")
        last = line.number
        guard case .success(let uri) = line.uri else { continue }
        must((1...1024).contains(uri.secret.count), "a secret of \(uri.secret.count) bytes")
      }
    }
  }
}

/// What is read does not hang on a last line that says nothing.
private func agrees(_ file: GoogleAuthenticatorFile, _ input: [UInt8]) {
  guard input.count < GoogleAuthenticatorFile.longest - 2 else { return }
  let longer = succeeds("with an empty line behind it") { () throws(LineProblem) in
    try GoogleAuthenticatorFile.parse(secret(input + Array("\n\n".utf8)))
  }
  must(
    constantTimeEquals(longer.secret, file.secret) && longer.kind == file.kind
      && longer.usedSteps == file.usedSteps && longer.window == file.window
      && longer.skew == file.skew && longer.scratchCodes.count == file.scratchCodes.count,
    "an empty line at the end changes something")
}

private func isLine(_ number: Int, of text: [UInt8]) -> Bool {
  (1...text.count { $0 == UInt8(ascii: "\n") } + 1).contains(number)
}

private func text(_ number: Int, of text: [UInt8]) -> [UInt8] {
  Array(text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[number - 1])
}
