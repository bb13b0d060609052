package import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportSupport

/// One entry of an app's export.
package struct AppEntry: Sendable {
  /// In the file, from 1; entries without a secret of ours count too.
  package let number: Int
  /// Issuer and account, where they can be shown.
  package let name: Label?
  package let content: Result<URIListLine.ReadURI, SourceProblem>

  package init(number: Int, name: Label?, content: Result<URIListLine.ReadURI, SourceProblem>) {
    (self.number, self.name, self.content) = (number, name, content)
  }
}

extension AppFormat {
  /// The entries of a tree that this format fits.
  func read(_ tree: ExportNode) -> [AppEntry] {
    (tree[entries]?.list ?? []).enumerated().compactMap { index, entry in
      if secret.form == .uri, !hasText(entry[secret.path]) { return nil }
      do throws(SourceProblem) {
        return AppEntry(
          number: index + 1, name: label(of: entry), content: .success(try content(of: entry)))
      } catch {
        return AppEntry(number: index + 1, name: label(of: entry), content: .failure(error))
      }
    }
  }

  private func hasText(_ node: ExportNode?) -> Bool {
    guard let text = node?.text else { return false }
    return (0..<text.count).contains { text[$0] > 0x20 }
  }

  private func content(of entry: ExportNode) throws(SourceProblem) -> URIListLine.ReadURI {
    guard secret.form != .uri else { return try ofURI(entry) }
    // First what it is: the secret of a kind that we do not do may have any form.
    let type = try type(of: entry)
    guard
      let parameters = CodeParameters(
        type: type, algorithm: try algorithm(of: entry), digits: try digits(of: entry))
    else { throw .noType }
    let counter = try number(of: entry, counter) ?? 0
    let key = try key(of: entry)
    guard HMACContext.keyLengths.contains(key.count) else { throw .uri(.secretLength(key.count)) }
    return URIListLine.ReadURI(secret: key, parameters: parameters, counter: counter)
  }

  // MARK: values

  private func type(of entry: ExportNode) throws(SourceProblem) -> AuthenticatorType {
    switch try word(of: entry, type) ?? "totp" {
    case "hotp": return .hotp
    case "totp": break
    case "steam": throw .kind("Steam")
    case "yandex": throw .kind("Yandex")
    case "motp": throw .kind("mOTP")
    case _: throw .kind(nil)
    }
    let seconds = try number(of: entry, period) ?? 30
    guard let seconds = UInt32(exactly: seconds), CodeParameters.periods.contains(seconds) else {
      throw .period(seconds)
    }
    return .totp(period: seconds)
  }

  private func algorithm(of entry: ExportNode) throws(SourceProblem) -> HashAlgorithm {
    let word = try word(of: entry, algorithm) ?? "sha1"
    guard let algorithm = HashAlgorithm(name: Array(word.utf8)) else {
      throw .hash(["md5", "sha224", "sha384"].contains(word) ? word : nil)
    }
    return algorithm
  }

  private func digits(of entry: ExportNode) throws(SourceProblem) -> Digits {
    let count = try number(of: entry, digits) ?? 6
    guard let digits = UInt8(exactly: count).flatMap(Digits.init(rawValue:)) else {
      throw .digits(count)
    }
    return digits
  }

  private func number(of entry: ExportNode, _ field: Field) throws(SourceProblem) -> UInt64? {
    guard let word = try word(of: entry, field) else { return nil }
    guard let number = UInt64(word) else { throw .value(field.path.last ?? "") }
    return number
  }

  /// A text or a number in lower case, in the usual spelling; nil where it is missing or empty.
  private func word(of entry: ExportNode, _ field: Field) throws(SourceProblem) -> String? {
    var word: String
    switch field.path.isEmpty ? nil : entry[field.path] {
    case .text(let text):
      guard text.count <= 20 else { throw .value(field.path.last ?? "") }
      word = String(decoding: text.bytes(in: 0..<text.count).map(lowercased), as: UTF8.self)
    case .number(let number): word = "\(number)"
    case .other, nil: return nil
    case .object, .list, .flag: throw .value(field.path.last ?? "")
    }
    if word.isEmpty { return nil }
    word = field.spelled[word] ?? word
    return word
  }

  private func key(of entry: ExportNode) throws(SourceProblem) -> Secret {
    switch (secret.form, entry[secret.path]) {
    case (.base32, .text(let text)): return try decoded(text)
    case (.bytes, .text(let text)): return text
    case (.signedBytes, .list(let list)): return try signedBytes(list)
    case _: throw .base32
    }
  }

  private func signedBytes(_ list: [ExportNode]) throws(SourceProblem) -> Secret {
    guard let key = Secret(count: list.count) else { throw .outOfMemory }
    for (index, node) in list.enumerated() {
      guard case .number(let number) = node, (-128...255).contains(number) else {
        throw .value("secret")
      }
      key.set(index, to: UInt8(truncatingIfNeeded: number))
    }
    return key
  }

  private func decoded(_ text: Secret) throws(SourceProblem) -> Secret {
    guard let bare = withPlainBlanks(text) else { throw .outOfMemory }
    do throws(Base32.Error) {
      return try Base32.decode(bare)
    } catch {
      throw .base32
    }
  }

  private func ofURI(_ entry: ExportNode) throws(SourceProblem) -> URIListLine.ReadURI {
    guard let text = entry[secret.path]?.text.flatMap(trimmed) else { throw .outOfMemory }
    let start = text.bytes(in: 0..<min(10, text.count)).map(lowercased)
    if start.starts(with: "steam://".utf8) { throw .kind("Steam") }
    if start.starts(with: "otpauth:".utf8) { return try URIListLine.read(text) }
    let key = try decoded(text)
    guard HMACContext.keyLengths.contains(key.count) else { throw .uri(.secretLength(key.count)) }
    return URIListLine.ReadURI(secret: key, parameters: .standard, counter: 0)
  }

  /// Without blanks around it.
  private func trimmed(_ text: Secret) -> Secret? {
    guard let text = withPlainBlanks(text) else { return nil }
    var (start, end) = (0, text.count)
    while start < end, text[start] <= 0x20 { start += 1 }
    while end > start, text[end - 1] <= 0x20 { end -= 1 }
    return text.slice(start..<end)
  }

  // MARK: name

  /// `issuer:account`, without what an app has put in front of the account already.
  private func label(of entry: ExportNode) -> Label? {
    let issuer = shortText(entry[issuer])
    var account = shortText(entry[account])
    if !issuer.isEmpty, account.starts(with: issuer + [UInt8(ascii: ":")]) {
      account = Array(account.dropFirst(issuer.count + 1))
    }
    let whole = issuer.isEmpty || account.isEmpty ? issuer + account : issuer + [0x3a] + account
    return mayHoldSecret(whole) ? nil : Label(whole)
  }

  private func shortText(_ node: ExportNode?) -> [UInt8] {
    guard let text = node?.text, text.count <= Label.maximumLength else { return [] }
    return text.bytes(in: 0..<text.count)
  }
}

/// A copy in which the blanks that people do not see are spaces: no-break and narrow ones, those of
/// no width, line feeds. The bytes stay where they are.
/// `keepsLines`: not line feeds.
package func withPlainBlanks(_ text: Secret, keepsLines: Bool = false) -> Secret? {
  let isPlain = [0xc2, 0xe2, 0xe3, 0xef].allSatisfy { text.first($0, in: 0..<text.count) == nil }
  if isPlain, keepsLines { return text }
  guard let copy = text.slice(0..<text.count) else { return nil }
  for index in 0..<text.count {
    let length = text[index] == 0x0a && !keepsLines ? 1 : oddBlank(text, index)
    for offset in 0..<length { copy.set(index + offset, to: 0x20) }
  }
  return copy
}

/// The length of the odd blank that begins there; 0 for none.
private func oddBlank(_ text: Secret, _ index: Int) -> Int {
  switch (text[index], text[index + 1], text[index + 2]) {
  case (0xc2, 0xa0, _): 2
  // U+2000 to U+200B, U+202F, U+205F, U+2060, U+3000, U+FEFF.
  case (0xe2, 0x80, 0x80...0x8b), (0xe2, 0x80, 0xaf), (0xe2, 0x81, 0x9f...0xa0),
    (0xe3, 0x80, 0x80), (0xef, 0xbb, 0xbf):
    3
  case _: 0
  }
}
