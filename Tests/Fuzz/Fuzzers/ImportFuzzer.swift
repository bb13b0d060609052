import OneTimePassword
import SallyportCore
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
  // shows: import-lines
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

extension Fuzzer {
  /// An app's export of any form: what is taken has a secret and its own number, a fault its line,
  /// and a name can be shown.
  static let appExport = Fuzzer(name: "app-export") { input in
    do throws(AppExport.Failure) {
      guard let export = try AppExport.read(secret(input)) else { return }
      var last = 0
      for entry in export.entries {
        must(entry.number > last, "entry \(entry.number)")
        last = entry.number
        agrees(entry)
      }
    } catch {
      switch error {
      case .line(let fault):
        must(isLine(fault.line, of: input) && fault.problem != .outOfMemory, "\(fault)")
      case .sealed, .picture, .unknown, .tooLong: break
      }
    }
  }

  /// The data of a picture of Google Authenticator, with any bytes in the message.
  static let googleExport = Fuzzer(name: "google-export") { input in
    let head = Array("otpauth-migration://offline?data=".utf8)
    // As text, and as the bytes of which text is made.
    for uri in [head + input, head + base64(input)] {
      do throws(SourceProblem) {
        let export = try GoogleExport(secret(uri))
        must((0..<export.parts).contains(export.part), "part \(export.part)")
        for entry in export.entries { agrees(entry) }
      } catch {
        must(error != .outOfMemory, "\(error)")
      }
    }
  }
}

private func base64(_ bytes: [UInt8]) -> [UInt8] {
  let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var (text, pending, bits): ([UInt8], UInt32, UInt32) = ([], 0, 0)
  for byte in bytes {
    (pending, bits) = (pending << 8 & 0xffff | UInt32(byte), bits + 8)
    while bits >= 6 {
      bits -= 6
      text.append(letters[Int(pending >> bits & 63)])
    }
  }
  return bits > 0 ? text + [letters[Int(pending << (6 - bits) & 63)]] : text
}

private func agrees(_ entry: AppEntry) {
  switch entry.content {
  case .success(let uri):
    must((1...1024).contains(uri.secret.count), "a secret of \(uri.secret.count) bytes")
  case .failure(let problem): must(problem != .outOfMemory, "out of memory")
  }
  if let name = entry.name {
    must(!name.bytes.contains { $0 < 0x20 }, "a name that moves the cursor")
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

func isLine(_ number: Int, of text: [UInt8]) -> Bool {
  (1...text.count { $0 == UInt8(ascii: "\n") } + 1).contains(number)
}

private func text(_ number: Int, of text: [UInt8]) -> [UInt8] {
  Array(text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[number - 1])
}
