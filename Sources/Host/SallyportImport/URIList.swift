package import OneTimePassword
import SallyportAdministration
import SallyportCore

/// A list of otpauth URIs: `USER URI` on each line, or only URIs if all belong to one user. Blank
/// lines and comments (`#`) are skipped.
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
    let wanted = isOneUsers ? 1 : 2
    user = isOneUsers || words.isEmpty ? [] : text.bytes.bytes(in: words[0].prefix(1024))
    do throws(SourceProblem) {
      guard words.count >= wanted else { throw .tooFewWords }
      // Names in a URI may contain spaces that should have been percent-encoded.
      let place = words[wanted - 1].lowerBound..<words[words.count - 1].upperBound
      guard let bytes = text.bytes.slice(place) else { throw .outOfMemory }
      uri = .success(try URIListLine.read(bytes))
    } catch {
      uri = .failure(error)
    }
  }

  private static func read(_ bytes: Secret) throws(SourceProblem) -> ReadURI {
    do throws(OtpauthURI.Error) {
      let uri = try OtpauthURI(bytes)
      return ReadURI(secret: uri.secret, parameters: uri.parameters, counter: uri.counter)
    } catch {
      throw .uri(error)
    }
  }
}
