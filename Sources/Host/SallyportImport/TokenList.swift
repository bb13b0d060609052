package import OneTimePassword
package import SallyportAdministration
import SallyportCore
import SallyportSupport

/// A token as a list or a key container has it.
package struct ListedToken: Sendable {
  package let serial: TokenSerial
  package let secret: Secret
  package let parameters: CodeParameters
  /// The greatest counter or time step that was used; nil: none is known.
  package var lastAccepted: UInt64?
  /// How far its clock is off, in seconds.
  package var clockOffset: Int32 = 0
  /// What of its codes the file does not say: type, period, digits or algorithm.
  package var assumed: [TokenColumn] = []
  /// Whose the file says it is, spelled as there.
  package var user: [UInt8]?
  /// Counted from 1; of a key container its number.
  package let line: Int

  package init(
    _ serial: TokenSerial, _ secret: Secret, _ parameters: CodeParameters, lastAccepted: UInt64?,
    line: Int
  ) {
    (self.serial, self.secret, self.parameters) = (serial, secret, parameters)
    (self.lastAccepted, self.line) = (lastAccepted, line)
  }
}

/// A vendor's list of tokens: separated values, one token a line.
package struct TokenList: Sendable {
  package private(set) var tokens: [ListedToken] = []
  /// How many lines are about something else than a one-time code, in a log of Yubico's.
  package private(set) var leftOut = 0

  /// The words of the head, and what was made of them; empty where the columns are by no head.
  package private(set) var heads: [(name: [UInt8], column: TokenColumn)] = []

  /// The line that was taken for a head although the columns were given.
  package private(set) var headLine: Int?

  /// In bytes: enough for some hundred thousand tokens.
  package static let longest = 1 << 24

  /// `standard`: what holds where a line does not tell. `form`, `columns`: nil where the list tells
  /// them. Any bytes give a list in which no serial number is there twice, or an error; of lines
  /// that are wrong all are named.
  package init(
    _ bytes: Secret, in form: SecretForm?, _ columns: [TokenColumn]?, standard: CodeParameters
  ) throws(TokenListError) {
    guard bytes.first(0, in: 0..<bytes.count) == nil, bytes.count < 2 || bytes[0] != 0xff else {
      throw .notText
    }
    let text = SeparatedText(bytes)
    guard let first = text.records.first else { throw .empty }
    if text.isMarkup { throw .markup }
    guard text.separator != nil else { throw .noSeparator(hasBlanks: text.hasBlanks(first)) }
    let layout = try TokenLayout(of: text, first, columns, form)
    var reader = TokenLineReader(text: text, layout: layout, standard: standard)
    let records = text.records.dropFirst(layout.hasHead ? 1 : 0)
    let rows = records.filter { layout.isToken($0, in: text) }
    leftOut = records.count - rows.count
    guard !rows.isEmpty else { throw .empty }
    if layout.hasHead, columns != nil { headLine = first.line }
    heads = Array(zip(layout.names, layout.columns)).map { (name: $0.0, column: $0.1) }
    if reader.hasSecretsAsSerials(rows) { throw .secretsAsSerials }
    let found: SecretForm
    if let told = form ?? layout.form { found = told } else { found = try reader.form(of: rows) }
    for record in rows { reader.read(record, in: found) }
    if !reader.problems.isEmpty { throw .problems(reader.problems) }
    tokens = reader.tokens
  }

  /// Whether a text may be such a list, by a separator in its first line.
  package static func isMeant(_ bytes: Secret) -> Bool { SeparatedText(bytes).separator != nil }
}

/// Reads the lines of a list.
private struct TokenLineReader {
  let text: SeparatedText
  let layout: TokenLayout
  let standard: CodeParameters
  private(set) var tokens: [ListedToken] = []
  private(set) var problems: [TokenProblem] = []
  private var lines: [TokenSerial: Int] = [:]

  init(text: SeparatedText, layout: TokenLayout, standard: CodeParameters) {
    (self.text, self.layout, self.standard) = (text, layout, standard)
  }

  /// By columns that were exchanged: a secret must not become the name of a file.
  func hasSecretsAsSerials(_ rows: [SeparatedText.Record]) -> Bool {
    rows.allSatisfy { row in
      guard let range = field(.serial, row), range.count >= 26, let typed = text.bytes.slice(range)
      else { return false }
      let hexadecimal = (try? Hexadecimal.decode(typed))?.count ?? 0
      return max(hexadecimal, (try? Base32.decodeAsApps(typed))?.count ?? 0) >= 16
    }
  }

  /// The one form in which all secrets can be read.
  func form(of rows: [SeparatedText.Record]) throws(TokenListError) -> SecretForm {
    var (hexadecimal, base32, hasEither) = (Int?.none, Int?.none, false)
    for row in rows {
      guard let index = layout.index(of: .secret), index < row.fields.count,
        let typed = text.bytes.slice(row.fields[index])
      else { continue }
      let isHexadecimal = ((try? Hexadecimal.decode(typed))?.count ?? 0) > 0
      let isBase32 = ((try? Base32.decodeAsApps(typed))?.count ?? 0) > 0
      if isHexadecimal, !isBase32 { hexadecimal = hexadecimal ?? row.line }
      if isBase32, !isHexadecimal { base32 = base32 ?? row.line }
      hasEither = hasEither || isHexadecimal && isBase32
    }
    switch (hexadecimal, base32) {
    case (let one?, let other?): throw .bothForms(hexadecimal: one, base32: other)
    case (_?, nil): return .hexadecimal
    case (nil, _?): return .base32
    case (nil, nil):
      if hasEither { throw .eitherForm }
      // None is a secret: each line says so.
      return .base32
    }
  }

  /// Adds the token of this line, or what is wrong with it.
  mutating func read(_ record: SeparatedText.Record, in form: SecretForm) {
    do throws(TokenProblem) {
      guard !record.isBroken else {
        throw TokenProblem(line: record.line, "a quote is not closed, or text follows it")
      }
      let serial = try serial(record)
      if let before = lines[serial] {
        throw problem(record, .serial, "the same serial number as line \(before)")
      }
      lines[serial] = record.line
      let parameters = try parameters(record)
      let secret = try secret(record, in: form)
      var token = ListedToken(
        serial, secret, parameters, lastAccepted: try lastCounter(record, parameters),
        line: record.line)
      token.assumed = assumed(record, parameters)
      if let range = field(.user, record), !range.isEmpty {
        token.user = text.bytes.bytes(in: range.prefix(1024))
      }
      tokens.append(token)
    } catch {
      problems.append(error)
    }
  }

  private func assumed(_ record: SeparatedText.Record, _ parameters: CodeParameters)
    -> [TokenColumn]
  {
    var columns: [TokenColumn] = []
    if value(.type, record) == nil, !layout.isYubico { columns.append(.type) }
    if parameters.type != .hotp, value(periodColumn, record) == nil { columns.append(.period) }
    if value(.digits, record) == nil { columns.append(.digits) }
    if value(.algorithm, record) == nil, !layout.isYubico { columns.append(.algorithm) }
    return columns
  }

  // MARK: fields

  /// The last one of a list without a head is the time step or the counter.
  private var periodColumn: TokenColumn {
    layout.index(of: .period) == nil && layout.isPlain ? .counter : .period
  }

  /// nil where there is no such column, or the line ends before it.
  private func field(_ column: TokenColumn, _ record: SeparatedText.Record) -> Range<Int>? {
    guard let index = layout.index(of: column), index < record.fields.count else { return nil }
    return record.fields[index]
  }

  /// As bytes, of what is no secret; nil also where nothing stands there.
  private func value(_ column: TokenColumn, _ record: SeparatedText.Record) -> [UInt8]? {
    guard let range = field(column, record), !range.isEmpty else { return nil }
    return text.bytes.bytes(in: range.prefix(256))
  }

  private func problem(_ record: SeparatedText.Record, _ column: TokenColumn, _ text: String)
    -> TokenProblem
  {
    TokenProblem(line: record.line, column: layout.index(of: column).map { $0 + 1 }, text)
  }

  private func serial(_ record: SeparatedText.Record) throws(TokenProblem) -> TokenSerial {
    if let index = layout.identifier(in: record, of: text) {
      let fault = "the key types its token identifier before each code, so none would be right"
      throw TokenProblem(line: record.line, column: index + 1, fault)
    }
    guard let bytes = value(.serial, record) else {
      let isLog = layout.isYubico
      throw problem(
        record, .serial, "no serial number" + (isLog ? ": write that of the key there" : ""))
    }
    let signs = [UInt8(ascii: "="), UInt8(ascii: "'")]
    if bytes.contains(UInt8(ascii: "\"")) || bytes.first.map({ signs.contains($0) }) == true {
      throw problem(record, .serial, "it has a quote or a sign that a spreadsheet added")
    }
    if isShortened(bytes) {
      throw problem(record, .serial, "a spreadsheet rounded this number, so it is no serial number")
    }
    guard let serial = TokenSerial(bytes) else {
      throw problem(record, .serial, "not a serial number")
    }
    return serial
  }

  /// `2.60012E+11`
  private func isShortened(_ bytes: [UInt8]) -> Bool {
    let parts = bytes.map(lowercased).split(separator: UInt8(ascii: "e"))
    guard parts.count == 2, parts[1].first == UInt8(ascii: "+") else { return false }
    let digits = parts[0].filter { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: ",") }
    return decimal(Array(digits)) != nil && decimal(Array(parts[1].dropFirst())) != nil
  }

  private func secret(_ record: SeparatedText.Record, in form: SecretForm) throws(TokenProblem)
    -> Secret
  {
    guard let range = field(.secret, record), !range.isEmpty else {
      throw problem(record, .secret, "no secret")
    }
    guard let typed = text.bytes.slice(range) else {
      throw TokenProblem(line: record.line, "out of memory")
    }
    let read: Secret?
    switch form {
    case .base32: read = try? Base32.decodeAsApps(typed)
    case .hexadecimal: read = try? Hexadecimal.decode(typed)
    }
    guard let secret = read else {
      let name = form == .base32 ? "base32" : "hexadecimal"
      throw problem(record, .secret, "the secret is not \(name)")
    }
    if let flaw = secret.flaw { throw problem(record, .secret, flaw) }
    return secret
  }

  private func parameters(_ record: SeparatedText.Record) throws(TokenProblem) -> CodeParameters {
    let type = try type(record)
    var (algorithm, digits) = (standard.algorithm, standard.digits)
    if let name = value(.algorithm, record) {
      let isHMAC = name.prefix(4).map(lowercased) == Array("hmac".utf8)
      let rest = isHMAC ? name.dropFirst(4).drop { $0 == 0x2d || $0 == 0x5f } : name[...]
      guard let found = HashAlgorithm(name: rest) else {
        throw problem(record, .algorithm, "not SHA1, SHA256 or SHA512")
      }
      algorithm = found
    }
    if let number = value(.digits, record) {
      guard let count = decimal(number).flatMap({ UInt8(exactly: $0) }),
        let found = Digits(rawValue: count)
      else { throw problem(record, .digits, "not 6, 7 or 8 digits") }
      digits = found
    }
    guard let made = CodeParameters(type: type, algorithm: algorithm, digits: digits) else {
      throw problem(record, .period, "not a time step of 15 to 300 seconds")
    }
    return made
  }

  private func type(_ record: SeparatedText.Record) throws(TokenProblem) -> AuthenticatorType {
    var isTimed = standard.type != .hotp
    if layout.isYubico { isTimed = false }
    if let word = value(.type, record) {
      guard let found = TokenLayout.isTimed(word) else {
        throw problem(record, .type, "not totp or hotp")
      }
      isTimed = found
    }
    guard isTimed else { return .hotp }
    var period: UInt32 = 30
    if case .totp(let usual) = standard.type { period = usual }
    let column = periodColumn
    if let text = value(column, record) {
      let digits = text.filter { $0 != 0x20 }.prefix { (0x30...0x39).contains($0) }
      guard let seconds = decimal(Array(digits)).flatMap({ UInt32(exactly: $0) }) else {
        throw problem(record, column, "not a time step of 15 to 300 seconds")
      }
      period = seconds
    }
    return .totp(period: period)
  }

  /// The list has the counter of the next code.
  private func lastCounter(_ record: SeparatedText.Record, _ parameters: CodeParameters)
    throws(TokenProblem) -> UInt64?
  {
    guard parameters.type == .hotp, let digits = value(.counter, record) else { return nil }
    guard let next = decimal(digits), next < HeldCounter.most else {
      throw problem(record, .counter, "not a counter")
    }
    return next > 0 ? next - 1 : nil
  }
}

extension Secret {
  /// Why it is no secret of a token; nil: it may be one.
  package var flaw: String? {
    if count < Secret.shortestKey || count > Secret.longestKey {
      let wanted = "expected \(Secret.shortestKey) to \(Secret.longestKey)"
      return "the secret is \(counted(count, "byte")) long, \(wanted)"
    }
    let isConstant = (0..<count).allSatisfy { self[$0] == self[0] }
    return isConstant ? "all bytes of the secret are the same" : nil
  }
}
