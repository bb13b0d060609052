package import OneTimePassword
package import SallyportAdministration
import SallyportCore
import SallyportSupport

/// Why a line of another module's file cannot be imported. Never contains a byte of a secret.
package struct SourceProblem: Error, Equatable, Sendable {
  package let text: String
  /// Whether the line is well formed, but asks for something that is not supported.
  let needsNewSecret: Bool
  /// Whether an entry of an app is of a kind that has no place here: it is skipped, and named.
  package let isOfOtherKind: Bool

  private init(_ text: String, needsNewSecret: Bool = false, isOfOtherKind: Bool = false) {
    (self.text, self.needsNewSecret, self.isOfOtherKind) = (text, needsNewSecret, isOfOtherKind)
  }

  package static let empty = SourceProblem("the file is empty")
  package static let notText = SourceProblem("not a text file: it has a NUL byte")
  /// More than the other module itself reads.
  package static let tooLong = SourceProblem("longer than 64 KiB")
  package static let base32 = SourceProblem("the secret is not base32")
  package static let hexadecimal = SourceProblem(
    "the key is not an even number of hexadecimal digits")
  /// The other module rejects it too.
  package static let keyTooLong = SourceProblem(
    "the key has more than \(UsersOathToken.longestKey) bytes", needsNewSecret: true)
  package static let noType = SourceProblem(
    "neither TOTP_AUTH nor HOTP_COUNTER is set", needsNewSecret: true)
  package static let unknownType = SourceProblem("not a type that pam_oath knows")
  package static let counter = SourceProblem(
    "the counter is not a number, or is exhausted", needsNewSecret: true)
  package static let date = SourceProblem(
    "the time of the last use does not have the form 2026-03-03T09:12:00L")
  package static let tooFewWords = SourceProblem("fields are missing")
  package static let quote = SourceProblem("a name with spaces stands between two double quotes")
  package static let outOfMemory = SourceProblem("out of memory")

  /// The other module rejects the value too.
  package static func option(_ name: String) -> SourceProblem {
    SourceProblem("the value of \(name) is out of range")
  }

  package static func period(_ seconds: UInt64) -> SourceProblem {
    SourceProblem(
      "the time step is \(seconds) s, expected 15 to 300", needsNewSecret: true, isOfOtherKind: true
    )
  }

  package static func uri(_ error: OtpauthURI.Error) -> SourceProblem {
    SourceProblem(error.text, isOfOtherKind: error.isOfOtherKind)
  }

  // MARK: exports of apps

  static let json = SourceProblem("not JSON from here on, or cut short")
  static let xml = SourceProblem("not the XML that KeePass writes from here on, or cut short")
  static let quotes = SourceProblem("a field has a quote too few or too many")
  static let columns = SourceProblem("not as many fields as the first line has")
  static let protobuf = SourceProblem("the picture's data are cut short, or not what an app wrote")
  static let migration = SourceProblem("not an otpauth-migration URI with data")

  /// nil: one without a name here.
  static func kind(_ name: String?) -> SourceProblem {
    SourceProblem(
      name.map { "codes of \($0) cannot be computed here" }
        ?? "codes of a type that is not known here", isOfOtherKind: true)
  }

  /// nil: one without a name here.
  static func hash(_ name: String?) -> SourceProblem {
    SourceProblem(
      "the algorithm is "
        + (name.map { "\($0.uppercased())" } ?? "unknown") + ", expected SHA1, SHA256 or SHA512",
      isOfOtherKind: true)
  }

  static func digits(_ count: UInt64) -> SourceProblem {
    SourceProblem("its codes have \(count) digits, expected 6 to 8", isOfOtherKind: true)
  }

  /// A member of the format by its name.
  static func value(_ name: String) -> SourceProblem {
    SourceProblem("the value of \(name) is not supported")
  }
}

extension OtpauthURI.Error {
  fileprivate var isOfOtherKind: Bool {
    switch self {
    case .type, .range, .algorithm: true
    case .scheme, .percentEncoding, .duplicate, .missing, .number, .secret, .secretLength,
      .outOfMemory:
      false
    }
  }

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

/// A problem and its line, counted from 1.
package struct LineProblem: Error, Equatable, Sendable {
  package let line: Int
  package let problem: SourceProblem

  package init(_ line: Int, _ problem: SourceProblem) {
    (self.line, self.problem) = (line, problem)
  }
}
