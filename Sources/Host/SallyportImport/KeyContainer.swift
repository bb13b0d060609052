package import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport

/// A portable symmetric key container (PSKC, RFC 6030).
package struct KeyContainer: Sendable {
  package private(set) var tokens: [ListedToken] = []
  /// What it says and is ignored, each once.
  package private(set) var unheeded: [String] = []

  /// In bytes: enough for some ten thousand keys.
  package static let longest = 1 << 24

  /// Why nothing of it can be imported.
  package enum Error: Swift.Error, Equatable, Sendable {
    case notXML(line: Int)
    /// Not a KeyContainer of version 1.0.
    case notContainer
    case empty
    case keyWanted(passphrase: Bool)
    case otherKeyWanted(passphrase: Bool)
    /// A wrong key or passphrase, or a file that was changed.
    case wrongKey
    case unsupported(String)
    case problems([TokenProblem])
  }

  /// `period`: where it does not tell a time step. Any bytes give tokens with different serial
  /// numbers, or an error; of keys that are wrong all are named.
  package init(_ bytes: Secret, by secret: ContainerSecret?, period: UInt32) throws(Error) {
    let text: XMLText
    do throws(XMLText.Error) {
      text = try XMLText(bytes)
    } catch {
      if error.isTooMuch { throw .unsupported("too many elements or attributes") }
      throw .notXML(line: error.line)
    }
    let root = text.root
    guard root.name == "KeyContainer", (root.attributes["Version"] ?? "").hasPrefix("1") else {
      throw .notContainer
    }
    let packages = root.children.filter { $0.name == "KeyPackage" }
    guard !packages.isEmpty else { throw .empty }
    let isEncrypted = packages.contains {
      $0.at("Key", "Data", "Secret", "EncryptedValue") != nil
    }
    var reader = KeyPackageReader(
      text: text, period: period, doubled: KeyContainer.doubledSerials(packages, text),
      isPlain: !isEncrypted && secret == nil && root["EncryptionKey"] == nil
        && root["MACMethod"] == nil)
    if isEncrypted {
      do throws(ContainerKey.Error) {
        reader.key = try ContainerKey(root, text, secret)
      } catch {
        throw Error(error)
      }
    }
    for package in packages { try reader.read(package) }
    if root["Signature"] != nil { reader.note("its signature is not checked") }
    if !reader.problems.isEmpty { throw .problems(reader.problems) }
    (tokens, unheeded) = (reader.tokens, reader.notes)
  }

  /// Of devices with several keys, each of which then goes by its own id.
  private static func doubledSerials(_ packages: [XMLElement], _ text: XMLText) -> Set<String> {
    var (seen, doubled) = (Set<String>(), Set<String>())
    for package in packages {
      guard let serial = text.string(package.at("DeviceInfo", "SerialNo")) else { continue }
      if !seen.insert(serial).inserted { doubled.insert(serial) }
    }
    return doubled
  }
}

extension KeyContainer.Error {
  init(_ error: ContainerKey.Error) {
    switch error {
    case .wanted(let passphrase): self = .keyWanted(passphrase: passphrase)
    case .other(let passphrase): self = .otherKeyWanted(passphrase: passphrase)
    case .unsupported(let what): self = .unsupported(what)
    case .wrong: self = .wrongKey
    case .outOfMemory: self = .unsupported("more memory than this machine has")
    }
  }
}

/// Reads the packages of a container, one key each.
private struct KeyPackageReader {
  let text: XMLText
  let period: UInt32
  let doubled: Set<String>
  /// Whether a secret may stand in it as it is: nobody expects it to be encrypted.
  let isPlain: Bool
  var key: ContainerKey?
  private(set) var tokens: [ListedToken] = []
  private(set) var problems: [TokenProblem] = []
  private(set) var notes: [String] = []
  private var lines: [TokenSerial: Int] = [:]

  init(text: XMLText, period: UInt32, doubled: Set<String>, isPlain: Bool) {
    (self.text, self.period, self.doubled, self.isPlain) = (text, period, doubled, isPlain)
  }

  mutating func note(_ text: String) { if !notes.contains(text) { notes.append(text) } }

  /// Adds its token, or what is wrong with it. Throws where a value was changed.
  mutating func read(_ package: XMLElement) throws(KeyContainer.Error) {
    do throws(TokenProblem) {
      guard let one = try only("Key", of: package) else { throw problem(package, "no key") }
      if let data = try only("Data", of: one) { _ = try only("Secret", of: data) }
      let serial = try serial(package, one)
      if let before = lines[serial] {
        throw problem(package, "the same serial number as line \(before)")
      }
      lines[serial] = package.line
      try check(one)
      let parameters = try parameters(one)
      guard let secret = try secret(one).get() else { throw problem(package, "no secret") }
      if let flaw = secret.flaw { throw problem(package, flaw) }
      var token = ListedToken(
        serial, secret, parameters, lastAccepted: try lastCounter(one, parameters),
        line: package.line)
      token.clockOffset = try offset(one, parameters)
      token.assumed = assumed(one, parameters)
      let user = text.string(one["UserId"]) ?? text.string(package.at("DeviceInfo", "UserId"))
      token.user = user.map { Array($0.utf8.prefix(1024)) }
      tokens.append(token)
    } catch {
      problems.append(error)
      if error.text == KeyPackageReader.changed { throw .wrongKey }
    }
  }

  private static let changed = "its MAC is wrong"

  private func problem(_ element: XMLElement, _ text: String) -> TokenProblem {
    TokenProblem(line: element.line, text)
  }

  /// A package has one key with one secret; which of two is meant, it does not say.
  private func only(_ name: String, of element: XMLElement) throws(TokenProblem) -> XMLElement? {
    let found = element.children.filter { $0.name == name }
    if found.count > 1 { throw problem(found[1], "a second \(name) in one package") }
    return found.first
  }

  private func serial(_ package: XMLElement, _ one: XMLElement) throws(TokenProblem) -> TokenSerial
  {
    let number = text.string(package.at("DeviceInfo", "SerialNo"))
    let name = number.flatMap { doubled.contains($0) || $0.isEmpty ? nil : $0 }
    guard let name = name ?? one.attributes["Id"] else {
      throw problem(package, "no serial number")
    }
    guard let serial = TokenSerial(name.utf8) else { throw problem(package, "not a serial number") }
    return serial
  }

  /// What it asks for that is not done here.
  private mutating func check(_ one: XMLElement) throws(TokenProblem) {
    let asked = one["AlgorithmParameters"]
    if asked?["ChallengeFormat"] != nil { throw problem(one, "it answers challenges") }
    if let response = asked?["ResponseFormat"] {
      let encoding = response.attributes["Encoding"] ?? "DECIMAL"
      if encoding != "DECIMAL" { throw problem(one, "its codes are not decimal") }
      for name in ["CheckDigits", "CheckDigit"]
      where ["true", "1"].contains(response.attributes[name] ?? "") {
        throw problem(one, "its codes have a check digit")
      }
    }
    guard let policy = one["Policy"] else { return }
    if let pin = policy["PINPolicy"], pin.attributes["PINUsageMode"] != "Local" {
      throw problem(one, "its codes need a PIN")
    }
    let uses = policy.children.filter { $0.name == "KeyUsage" }.compactMap { text.string($0) }
    if !uses.isEmpty, !uses.contains("OTP") { throw problem(one, "its key is not for codes") }
    let dates = [
      ("StartDate", "when a key may first be used"), ("ExpiryDate", "when a key expires"),
      ("NumberOfTransactions", "how often a key may be used"),
    ]
    // RFC 6030 §5: what is not understood forbids the use.
    let known = dates.map { $0.0 } + ["PINPolicy", "KeyUsage"]
    if let other = policy.children.first(where: { !known.contains($0.name) }) {
      throw problem(
        one, "it has a rule of use that is not supported: \(printable(other.name.utf8, limit: 64))")
    }
    for (name, what) in dates where policy[name] != nil { note("\(what) is ignored") }
  }

  private func parameters(_ one: XMLElement) throws(TokenProblem) -> CodeParameters {
    let type: AuthenticatorType
    switch ContainerKey.word(one.attributes["Algorithm"]) {
    case "hotp": type = .hotp
    case "totp": type = .totp(period: try seconds(one))
    case let other: throw problem(one, "neither hotp nor totp: \(printable(other.utf8, limit: 64))")
    }
    let length = one.at("AlgorithmParameters", "ResponseFormat")?.attributes["Length"] ?? "6"
    guard let digits = UInt8(length).flatMap(Digits.init(rawValue:)) else {
      throw problem(one, "not 6, 7 or 8 digits")
    }
    var algorithm = HashAlgorithm.sha1
    if let suite = text.string(one.at("AlgorithmParameters", "Suite")), !suite.isEmpty {
      let name = suite.lowercased()
      let hash =
        name.hasPrefix("hmac") ? name.dropFirst(4).drop { $0 == "-" || $0 == "_" } : name[...]
      guard let found = HashAlgorithm(name: hash.utf8) else {
        throw problem(one, "not SHA1, SHA256 or SHA512")
      }
      algorithm = found
    }
    guard let made = CodeParameters(type: type, algorithm: algorithm, digits: digits) else {
      throw problem(one, "not a time step of 15 to 300 seconds")
    }
    return made
  }

  private func assumed(_ one: XMLElement, _ parameters: CodeParameters) -> [TokenColumn] {
    let asked = one["AlgorithmParameters"]
    var columns: [TokenColumn] = []
    if parameters.type != .hotp, one.at("Data", "TimeInterval") == nil { columns.append(.period) }
    if asked?["ResponseFormat"]?.attributes["Length"] == nil { columns.append(.digits) }
    if (text.string(asked?["Suite"]) ?? "").isEmpty { columns.append(.algorithm) }
    return columns
  }

  private func seconds(_ one: XMLElement) throws(TokenProblem) -> UInt32 {
    guard let told = try number(one, "TimeInterval") else { return period }
    return UInt32(clamping: told)
  }

  /// A plain value of the data; nil where there is none.
  private func number(_ one: XMLElement, _ name: String) throws(TokenProblem) -> Int64? {
    guard let element = one.at("Data", name) else { return nil }
    guard let plain = text.string(element["PlainValue"]) else {
      throw problem(one, "an encrypted \(name)")
    }
    guard let number = Int64(plain) else { throw problem(one, "\(name) is not a number") }
    return number
  }

  /// It has the counter of the next code.
  private func lastCounter(_ one: XMLElement, _ parameters: CodeParameters) throws(TokenProblem)
    -> UInt64?
  {
    // RFC 6030 §4.1: Time is how many time steps had passed, when somebody wrote it, not where they
    // begin. Codes until then are out of every window by now, and one that lies in the future
    // would lock the token: it is ignored.
    guard parameters.type == .hotp else { return nil }
    guard let next = try number(one, "Counter") else { return nil }
    guard next >= 0, next < 1 << 62 else { throw problem(one, "not a counter") }
    return next > 0 ? UInt64(next) - 1 : nil
  }

  private func offset(_ one: XMLElement, _ parameters: CodeParameters) throws(TokenProblem) -> Int32
  {
    guard case .totp(let period) = parameters.type, let steps = try number(one, "TimeDrift") else {
      return 0
    }
    let most = Int64(Authenticator.mostClockOffset(period)) / Int64(period)
    guard (-most...most).contains(steps) else {
      throw problem(one, "its clock is off by \(steps) steps, at most \(most) are accepted")
    }
    return Int32(steps) * Int32(period)
  }

  private func secret(_ one: XMLElement) -> Result<Secret?, TokenProblem> {
    guard let element = one.at("Data", "Secret") else {
      let isElsewhere = one["KeyReference"] != nil || one["KeyProfileId"] != nil
      return .failure(problem(one, isElsewhere ? "its secret is elsewhere" : "no secret"))
    }
    if let plain = element["PlainValue"] {
      guard isPlain else {
        return .failure(problem(one, "its secret is not encrypted, as it should be in this file"))
      }
      guard let secret = text.secret(plain).flatMap(Base64.decode) else {
        return .failure(problem(one, "the secret is not base64"))
      }
      return .success(secret)
    }
    guard let encrypted = element["EncryptedValue"], let key else {
      return .failure(problem(one, "no secret"))
    }
    do throws(ContainerKey.Error) {
      return .success(try key.value(of: encrypted, mac: element["ValueMAC"], text))
    } catch {
      switch error {
      case .unsupported(let what): return .failure(problem(one, "\(what) is not supported"))
      case .wanted, .other, .wrong, .outOfMemory:
        return .failure(problem(one, KeyPackageReader.changed))
      }
    }
  }
}
