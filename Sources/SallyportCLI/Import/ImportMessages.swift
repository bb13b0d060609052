import CSystem
import OneTimePassword
import SallyportCore
import SallyportImport
import SallyportSystem
import SallyportText

// What people and programs are told of an import. Never a byte of a secret.

extension Remark {
  var text: String {
    switch self {
    case .lastStepCarried: "last used step carried over"
    case .counterCarried: "counter carried over"
    case .reuseAllowed:
      "codes shown up to now count as used (no DISALLOW_REUSE that can be read)"
    case .lastCodeNotFound: "the last code is of no time around its use: not carried over"
    case .aheadOfClock: "the last code is of a time to come: codes are refused until then"
    case .scratchCodes(let count): "\(counted(count, "scratch code")) (weak: 26 bits each)"
    case .deadScratchCodes(let count):
      "\(counted(count, "scratch code")) behind another line left out, they did not work there"
    case .scratchCodesDropped(let count): "\(counted(count, "scratch code")) too many, left out"
    case .shortSecret(let bits): "secret of \(bits) bits"
    case .windowNarrowed(let theirs, let ours):
      "accepted were codes up to \(theirs) away, here it is \(ours)"
    case .clockOff(let steps):
      "its clock is \(driftText(Int32(clamping: steps)) ?? "right"): set it, codes are refused"
    case .clearTextPassword: "a clear-text password stands in the file: not imported, remove it"
    case .digitsOfLastCode(let line, let code):
      "\(code) digits as in its last code, the line means \(line)"
    case .doubled: "stands there twice"
    }
  }

  var code: String {
    switch self {
    case .lastStepCarried: "last-step-carried"
    case .counterCarried: "counter-carried"
    case .reuseAllowed: "reuse-was-allowed"
    case .lastCodeNotFound: "last-code-not-found"
    case .aheadOfClock: "ahead-of-clock"
    case .scratchCodes: "scratch-codes-weak"
    case .deadScratchCodes: "scratch-codes-dead"
    case .scratchCodesDropped: "scratch-codes-too-many"
    case .shortSecret: "secret-short"
    case .windowNarrowed: "window-narrowed"
    case .clockOff: "clock-off"
    case .clearTextPassword: "clear-text-password"
    case .digitsOfLastCode: "digits-of-last-code"
    case .doubled: "doubled"
    }
  }
}

extension Obstacle {
  var text: String {
    switch self {
    case .line(let error): "line \(error.line): \(error.problem.text)"
    case .userName: "that can be no user's name"
    case .noAccount: "there is no such user"
    case .enrolled(let count):
      "enrolled already, with another secret (\(counted(count, "authenticator")))"
    case .tooManyAuthenticators(let count):
      "\(count) authenticators, \(Enrollment.maximumAuthenticators) can be had"
    case .weakSecret(let bits):
      "the secret has only \(bits) bits (--force takes it)"
    case .constantSecret: "each byte of the secret is the same (--force takes it)"
    case .secretTooLong(let bytes):
      "the secret has \(bytes) bytes, \(Secret.longestKey) can be had"
    case .file(_, let problem): problem.text
    case .store(let trouble): Message(trouble, at: Invocation(verb: "import")).text
    }
  }

  /// For programs.
  var code: String {
    switch self {
    case .line: "line"
    case .userName: "user-name"
    case .noAccount: "no-account"
    case .enrolled: "enrolled"
    case .tooManyAuthenticators: "too-many-authenticators"
    case .weakSecret: "weak-secret"
    case .constantSecret: "constant-secret"
    case .secretTooLong: "secret-too-long"
    case .file(_, let problem): problem.code
    case .store: "store"
    }
  }

  /// Whether it only says that there is nothing to import.
  var isAbsence: Bool {
    guard case .file(_, .cannotRead(let number)) = self else { return false }
    return number == ENOENT || number == ENOTDIR
  }

  func fixes(_ invocation: Invocation) -> [String] {
    switch self {
    case .line(let error):
      error.problem.needsNewSecret
        ? [invocation.command("enroll", remark: "makes a new secret")] : []
    case .secretTooLong: [invocation.command("enroll", remark: "makes a new secret")]
    case .userName: []
    case .noAccount: ["getent passwd \(shellQuoted(invocation.user ?? ""))"]
    case .enrolled: [invocation.command("status", remark: "shows what is enrolled")]
    case .tooManyAuthenticators: []
    case .weakSecret, .constantSecret:
      [invocation.command("enroll", remark: "makes a better one")]
    case .file(let path, let problem): problem.fixes(path, invocation)
    case .store(let trouble): Message(trouble, at: invocation).hints
    }
  }
}

extension FileProblem {
  var text: String {
    switch self {
    case .symbolicLink: "the file is a symbolic link"
    case .notRegular: "it is not a regular file"
    case .owner(let owner, let wanted):
      "the file belongs to uid \(owner), it must be uid \(wanted)'s"
    case .openToOthers(let mode):
      "the file is \(mode & 0o044 != 0 ? "readable" : "open") by others"
        + " (mode 0\(String(mode & 0o777, radix: 8)))"
    case .tooLong(let most): "the file is longer than \(most / 1024) KiB"
    case .cannotRead(let number): errnoText(number)
    }
  }

  fileprivate var code: String {
    switch self {
    case .symbolicLink: "symbolic-link"
    case .notRegular: "not-regular"
    case .owner: "owner"
    case .openToOthers: "open-to-others"
    case .tooLong: "too-long"
    case .cannotRead: "cannot-read"
    }
  }

  fileprivate func fixes(_ path: String, _ invocation: Invocation) -> [String] {
    let quoted = shellQuoted(path)
    switch self {
    case .openToOthers: return ["chmod 600 \(quoted)"]
    case .symbolicLink:
      return ["readlink -f \(quoted)      that file can be imported by its name"]
    case .notRegular, .owner, .cannotRead: return ["ls -ld \(quoted)"]
    case .tooLong: return []
    }
  }
}

extension SourceProblem {
  /// Whether the line is well formed, and what it wants cannot be had.
  fileprivate var needsNewSecret: Bool {
    switch self {
    case .period, .counter, .keyTooLong, .noType: true
    case .empty, .notText, .tooLong, .base32, .hexadecimal, .unknownType, .option, .date,
      .tooFewWords, .userName, .uri, .outOfMemory:
      false
    }
  }

  var text: String {
    switch self {
    case .empty: "there is nothing in it"
    case .notText: "a NUL byte, this is no text"
    case .tooLong: "longer than 64 KiB"
    case .base32: "the secret is not base32"
    case .hexadecimal: "the key is no even number of hexadecimal digits"
    case .keyTooLong: "the key has more than \(UsersOathToken.longestKey) bytes"
    case .noType: "neither TOTP_AUTH nor HOTP_COUNTER is set"
    case .unknownType: "that type is none that pam_oath knows"
    case .option(let name): "the value of \(name.text) is out of its range"
    case .period(let seconds): "codes change every \(seconds) s, 15 to 300 can be had"
    case .counter: "the counter is no number, or has come to its end"
    case .date: "the time of the last use is not of the form 2026-03-03T09:12:00L"
    case .tooFewWords: "words are missing"
    case .userName: "that can be no user's name"
    case .uri(let error): error.text
    case .outOfMemory: "memory is short"
    }
  }
}

extension OtpauthURI.Error {
  fileprivate var text: String {
    switch self {
    case .scheme: "that is no otpauth:// URI"
    case .type: "the URI is neither of totp nor of hotp"
    case .percentEncoding: "a % in the URI is not followed by two hexadecimal digits"
    case .duplicate(let parameter): "\(parameter.name) stands twice in the URI"
    case .missing(let parameter): "\(parameter.name) is missing in the URI"
    case .number(let parameter): "\(parameter.name) of the URI is no number"
    case .range(let parameter, let found):
      "\(parameter.name)=\(found) cannot be had"
        + (parameter == .period ? ", 15 to 300 can" : ", 6 to 8 can")
    case .algorithm: "the hash of the URI is none of SHA1, SHA256 and SHA512"
    case .secret: "the secret of the URI is not base32"
    case .secretLength(let count): "the secret has \(counted(count, "byte"))"
    case .outOfMemory: "memory is short"
    }
  }
}

extension Message {
  init(_ problem: FileProblem, at path: String) {
    let file = path == "-" ? "standard input" : printable(path.utf8, limit: 255)
    let status: Sysexit
    switch problem {
    case .symbolicLink, .notRegular, .owner, .openToOthers, .tooLong: status = .badData
    case .cannotRead(let number):
      switch number {
      case ENOENT, ENOTDIR: status = .noInput
      case EACCES, EPERM: status = .notPermitted
      case _: status = .inputOutput
      }
    }
    self.init(
      "\(file): \(problem.text)", status, hints: path == "-" ? [] : ["ls -ld \(shellQuoted(path))"])
  }
}
