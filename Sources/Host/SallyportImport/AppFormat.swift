/// How an app writes its plain export: where its entries are, and where in each what is. Another
/// app is another value in `AppFormat.all`.
package struct AppFormat: Sendable {
  /// As the app calls itself.
  package let name: String
  /// Which reader makes a tree of it.
  let writing: Writing
  /// The list of entries. It tells the format from others, with `mark`.
  let entries: [String]
  /// A member that an entry has, where other formats have a list in the same place.
  var mark: [String] = []
  let secret: Field
  let issuer: [String]
  let account: [String]
  var type = Field([])
  var digits = Field([])
  var period = Field([])
  var algorithm = Field([])
  var counter = Field([])

  enum Writing: Sendable { case json, csv, keePassXML, protobuf }

  /// A value of an entry. Where it is missing, or empty, the usual one counts.
  struct Field: Sendable {
    let path: [String]
    /// How the secret is written.
    var form = SecretForm.base32
    /// What a format spells otherwise, in lower case, as others spell it.
    var spelled: [String: String] = [:]

    init(_ path: [String], _ form: SecretForm = .base32, spelled: [String: String] = [:]) {
      (self.path, self.form, self.spelled) = (path, form, spelled)
    }
  }

  enum SecretForm: Sendable {
    case base32
    /// A list of numbers from -128 to 127.
    case signedBytes
    /// As it is.
    case bytes
    /// An otpauth URI, which says the rest too; or Base32 with what is usual. Entries without one
    /// are none of ours.
    case uri
  }
}

extension AppFormat {
  static let all = [
    AppFormat(
      name: "Aegis", writing: .json, entries: ["db", "entries"], secret: Field(["info", "secret"]),
      issuer: ["issuer"], account: ["name"], type: Field(["type"]),
      digits: Field(["info", "digits"]), period: Field(["info", "period"]),
      algorithm: Field(["info", "algo"]), counter: Field(["info", "counter"])),
    AppFormat(
      name: "2FAS", writing: .json, entries: ["services"], secret: Field(["secret"]),
      issuer: ["name"], account: ["otp", "account"], type: Field(["otp", "tokenType"]),
      digits: Field(["otp", "digits"]), period: Field(["otp", "period"]),
      algorithm: Field(["otp", "algorithm"]), counter: Field(["otp", "counter"])),
    AppFormat(
      name: "andOTP", writing: .json, entries: [], mark: ["secret"], secret: Field(["secret"]),
      issuer: ["issuer"], account: ["label"], type: Field(["type"]), digits: Field(["digits"]),
      period: Field(["period"]), algorithm: Field(["algorithm"]), counter: Field(["counter"])),
    AppFormat(
      name: "FreeOTP+", writing: .json, entries: ["tokens"],
      secret: Field(["secret"], .signedBytes), issuer: ["issuerExt"], account: ["label"],
      type: Field(["type"]), digits: Field(["digits"]), period: Field(["period"]),
      algorithm: Field(["algo"]), counter: Field(["counter"])),
    AppFormat(
      name: "Bitwarden", writing: .json, entries: ["items"],
      secret: Field(["login", "totp"], .uri), issuer: ["name"], account: ["login", "username"]),
    AppFormat(
      name: "Bitwarden", writing: .csv, entries: ["rows"], mark: ["login_totp"],
      secret: Field(["login_totp"], .uri), issuer: ["name"], account: ["login_username"]),
    AppFormat(
      name: "KeePassXC", writing: .csv, entries: ["rows"], mark: ["TOTP"],
      secret: Field(["TOTP"], .uri), issuer: ["Title"], account: ["Username"]),
    AppFormat(
      name: "KeePassXC", writing: .keePassXML, entries: ["KeePassFile"],
      secret: Field(["otp"], .uri), issuer: ["Title"], account: ["UserName"]),
  ]

  /// Of one part. What the numbers stand for is not published: see the projects that read it.
  static let googleAuthenticator = AppFormat(
    name: "Google Authenticator", writing: .protobuf, entries: ["otp_parameters"],
    secret: Field(["secret"], .bytes), issuer: ["issuer"], account: ["name"],
    type: Field(["type"], spelled: ["0": "totp", "1": "hotp", "2": "totp"]),
    digits: Field(["digits"], spelled: ["0": "6", "1": "6", "2": "8", "3": "7"]),
    algorithm: Field(
      ["algorithm"],
      spelled: ["0": "sha1", "1": "sha1", "2": "sha256", "3": "sha512", "4": "md5"]),
    counter: Field(["counter"]))
}

/// An export that nobody can read without its password, and what to press for a plain one.
struct SealedExport: Sendable {
  let name: String
  let press: String

  /// A text that is there, or true, in the tree of one that is sealed.
  static let trees: [(path: [String], SealedExport)] = [
    (
      ["db"],
      SealedExport(
        name: "Aegis", press: "Settings > Import & Export > Export, without \"Encrypt the vault\"")
    ),
    (
      ["servicesEncrypted"],
      SealedExport(
        name: "2FAS", press: "Settings > 2FAS Backup > Export, without a password")
    ),
    (
      ["encrypted"],
      SealedExport(
        name: "Bitwarden",
        press: "Settings > Export vault, file format .json, not .json (Encrypted)")
    ),
    (
      ["encryptedData"],
      SealedExport(name: "Ente Auth", press: "Settings > Data > Export codes > Plain text")
    ),
  ]

  /// How such a file begins.
  static let heads: [(bytes: [UInt8], SealedExport)] = [
    (
      [0x03, 0xd9, 0xa2, 0x9a],
      SealedExport(
        name: "KeePassXC", press: "Database > Export > CSV File or XML File")
    ),
    (
      Array("-----BEGIN PGP MESSAGE".utf8),
      SealedExport(name: "andOTP", press: "Backups > Backup (plain-text)")
    ),
    (
      [0xac, 0xed, 0x00, 0x05],
      SealedExport(
        name: "FreeOTP", press: "FreeOTP has none, FreeOTP+ has: Export > Export JSON")
    ),
  ]

  /// One without a head of its own, such as andOTP's with a password.
  static let unknown = SealedExport(
    name: "an app, or no text", press: "export it without a password")
}
