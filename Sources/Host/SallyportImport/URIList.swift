package import OneTimePassword
import SallyportAdministration
import SallyportCore

/// A list of otpauth URIs: `USER URI` on each line, or only URIs if all belong to one user, then
/// also with `QR-Code:` before it, as zbarimg writes it. Blank lines and comments (`#`) are
/// skipped. A name with spaces is in double quotes.
package struct URIList: Sendable {
  package let lines: [URIListLine]

  /// Any bytes give a result. `isOneUsers`: the lines have no user names.
  package init(_ bytes: Secret, isOneUsers: Bool) {
    let text = SourceText(bytes, skipsMark: true)
    lines = text.lines.compactMap { line in
      let words = text.words(in: line.range)
      guard let first = words.first, bytes[first.lowerBound] != UInt8(ascii: "#") else {
        return nil
      }
      return URIListLine(text, line.number, words, isOneUsers: isOneUsers)
    }
  }
}

/// One line of the list.
package struct URIListLine: Sendable {
  package let number: Int
  /// Spelled as in the file; empty if the lines have no names.
  package let user: [UInt8]
  package let uri: Result<ReadURI, SourceProblem>
  /// Set where the line is a picture of Google Authenticator's export.
  package var export: Result<GoogleExport, SourceProblem>?

  /// Whether a word of it begins as a URI of an authenticator does, well formed or not.
  package let isMeant: Bool

  /// Whether it is such a picture, also where a user's name should stand.
  package var isExport: Bool { export != nil || Secret(user).map(GoogleExport.isMeant) == true }

  /// The parts of a URI that are stored. Its label and issuer are only for apps.
  package struct ReadURI: Sendable {
    package let secret: Secret
    package let parameters: CodeParameters
    /// HOTP only: the next counter.
    package let counter: UInt64
  }

  fileprivate init(
    _ text: SourceText, _ number: Int, _ words: [Range<Int>], isOneUsers: Bool
  ) {
    self.number = number
    isMeant = words.contains { word in
      let marks = ["otpauth", "qr-code:otpauth"]
      let start = text.bytes.bytes(in: word.prefix(15)).map(lowercased)
      return marks.contains { start.starts(with: $0.utf8) }
    }
    let (name, start) =
      isOneUsers ? (nil, URIListLine.start(text, words)) : URIListLine.name(text, words)
    user = name.map { text.bytes.bytes(in: $0.prefix(1024)) } ?? []
    do throws(SourceProblem) {
      guard isOneUsers || name?.isEmpty == false else { throw .quote }
      // Names in a URI may contain spaces that should have been percent-encoded.
      let end = words[words.count - 1].upperBound
      guard start < end else { throw .tooFewWords }
      guard let bytes = text.bytes.slice(start..<end) else { throw .outOfMemory }
      if GoogleExport.isMeant(bytes) {
        export = Result { () throws(SourceProblem) in try GoogleExport(bytes) }
      }
      uri = .success(try URIListLine.read(bytes))
    } catch {
      uri = .failure(error)
    }
  }

  /// Where the URI begins.
  private static func start(_ text: SourceText, _ words: [Range<Int>]) -> Int {
    let (start, mark) = (words[0].lowerBound, "QR-Code:")
    let head = start..<start + mark.utf8.count
    let isMarked = words[0].count >= head.count && text.bytes.bytes(in: head) == Array(mark.utf8)
    guard isMarked else { return start }
    return words[0].count > head.count || words.count == 1 ? head.upperBound : words[1].lowerBound
  }

  /// The user's name, and where what follows it begins; nil without the second of its two quotes,
  /// and where the URI comes after a second word.
  private static func name(_ text: SourceText, _ words: [Range<Int>]) -> (Range<Int>?, Int) {
    let (first, line) = (words[0], words[0].lowerBound..<words[words.count - 1].upperBound)
    guard text.first(of: first) == UInt8(ascii: "\"") else {
      let uris = words.firstIndex {
        text.bytes.bytes(in: $0.prefix(10)) == Array("otpauth://".utf8)
      }
      let start = words.count > 1 ? words[1].lowerBound : line.upperBound
      return (uris ?? 1 > 1 ? nil : first, start)
    }
    let inside = first.lowerBound + 1..<line.upperBound
    guard let end = text.offset(of: UInt8(ascii: "\""), in: inside) else {
      return (nil, line.upperBound)
    }
    let rest = text.words(in: end + 1..<line.upperBound)
    return (inside.lowerBound..<end, rest.first?.lowerBound ?? line.upperBound)
  }

  static func read(_ bytes: Secret) throws(SourceProblem) -> ReadURI {
    if isOfSteam(bytes) { throw .kind("Steam") }
    do throws(OtpauthURI.Error) {
      let uri = try OtpauthURI(bytes)
      return ReadURI(secret: uri.secret, parameters: uri.parameters, counter: uri.counter)
    } catch {
      throw .uri(error)
    }
  }

  /// As KeePassXC, Aegis and Ente write them.
  private static func isOfSteam(_ uri: Secret) -> Bool {
    let head = "otpauth://steam/".utf8
    if uri.bytes(in: 0..<head.count).map(lowercased).elementsEqual(head) { return true }
    return (0..<uri.count).contains { uri.holds("&encoder=steam", in: $0..<$0 + 14) }
  }
}
