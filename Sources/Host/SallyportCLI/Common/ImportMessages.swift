import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

// The messages of an import, as text and as codes for JSON. Never a byte of a secret.

extension Remark {
  var text: String {
    switch self {
    case .lastStepCarried: "last used step carried over"
    case .counterCarried: "counter carried over"
    case .reuseAllowed:
      "codes shown up to now count as used (no readable DISALLOW_REUSE)"
    case .lastCodeNotFound: "the last code matches no time near its use: not carried over"
    case .aheadOfClock: "the last code is of a future time: codes are refused until then"
    case .scratchCodes(let count): "\(counted(count, "scratch code")) (weak: 26 bits each)"
    case .deadScratchCodes(let count):
      "\(counted(count, "scratch code")) after another line not imported: they did not work there"
    case .scratchCodesDropped(let count): "\(counted(count, "scratch code")) too many, not imported"
    case .shortSecret(let bits): "secret of \(bits) bits"
    case .windowNarrowed(let theirs, let ours):
      "codes up to \(theirs) off were accepted, here up to \(ours)"
    case .clockOff(let steps):
      "its clock is \(driftText(Int32(clamping: steps)) ?? "right"): set it, codes are refused"
    case .clearTextPassword: "the file holds a clear-text password: not imported, remove it"
    case .digitsOfLastCode(let line, let code):
      "\(code) digits as in its last code, but the line says \(line)"
    case .doubled: "listed twice"
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
    case .userName: "not a valid user name"
    case .noAccount: "there is no such user"
    case .enrolled(let count):
      "already enrolled, with another secret (\(counted(count, "authenticator")))"
    case .tooManyAuthenticators(let count):
      "\(count) authenticators, the maximum is \(Enrollment.maximumAuthenticators)"
    case .weakSecret(let bits):
      "the secret has only \(bits) bits (--force imports it)"
    case .constantSecret: "all bytes of the secret are the same (--force imports it)"
    case .secretTooLong(let bytes):
      "the secret has \(bytes) bytes, the maximum is \(Secret.longestKey)"
    case .file(_, let problem): problem.text
    case .store(let trouble): Message(trouble, at: Invocation(verb: "import")).text
    }
  }

  /// The word for JSON.
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

  /// Whether the file does not exist, so that there is nothing to import.
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
    case .noAccount: [invocation.lookup]
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
    case .notRegular: "not a regular file"
    case .owner(let owner, let wanted):
      "the file is owned by uid \(owner), must be uid \(wanted)"
    case .openToOthers(let mode):
      "the file is \(mode & 0o044 != 0 ? "readable" : "accessible") by others"
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
  /// Whether the line is well formed, but asks for something that is not supported.
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
    case .empty: "the file is empty"
    case .notText: "not a text file: it has a NUL byte"
    case .tooLong: "longer than 64 KiB"
    case .base32: "the secret is not base32"
    case .hexadecimal: "the key is not an even number of hexadecimal digits"
    case .keyTooLong: "the key has more than \(UsersOathToken.longestKey) bytes"
    case .noType: "neither TOTP_AUTH nor HOTP_COUNTER is set"
    case .unknownType: "not a type that pam_oath knows"
    case .option(let name): "the value of \(name.text) is out of range"
    case .period(let seconds): "the time step is \(seconds) s, expected 15 to 300"
    case .counter: "the counter is not a number, or is exhausted"
    case .date: "the time of the last use does not have the form 2026-03-03T09:12:00L"
    case .tooFewWords: "fields are missing"
    case .userName: "not a valid user name"
    case .uri(let error): error.text
    case .outOfMemory: "out of memory"
    }
  }
}

extension OtpauthURI.Error {
  fileprivate var text: String {
    switch self {
    case .scheme: "not an otpauth:// URI"
    case .type: "unknown type in the otpauth URI: expected totp or hotp"
    case .percentEncoding: "a % in the URI is not followed by two hexadecimal digits"
    case .duplicate(let parameter): "\(parameter.name) is given twice in the URI"
    case .missing(let parameter): "\(parameter.name) is missing from the URI"
    case .number(let parameter): "\(parameter.name) in the URI is not a number"
    case .range(let parameter, let found):
      "\(parameter.name)=\(found) is not supported"
        + (parameter == .period ? ", expected 15 to 300" : ", expected 6 to 8")
    case .algorithm: "unknown algorithm in the URI: expected SHA1, SHA256 or SHA512"
    case .secret: "the secret in the URI is not base32"
    case .secretLength(let count): "the secret has \(counted(count, "byte"))"
    case .outOfMemory: "out of memory"
    }
  }
}

extension CommandError {
  /// A list to import cannot be read.
  static func importFile(path: String, _ problem: FileProblem) -> CommandError {
    if path.lowercased().hasPrefix("otpauth:") {
      return CommandError(
        .usage,
        "a URI is not taken from the command line, which others can read: it is read from standard "
          + "input or a file", hints: ["sallyport import uri --user NAME < FILE"])
    }
    var status = Sysexit.badData
    if case .cannotRead(let number) = problem { status = Sysexit(errno: number) }
    return CommandError(
      status, "\(shownSource(path)): \(problem.text)", hints: path == "-" ? [] : lookingAt(path))
  }
}

/// A list to import, for a message.
func shownSource(_ path: String) -> String { path == "-" ? "standard input" : shownPath(path) }
