import OneTimePassword
import SallyportCore

/// Where a sealed question stands: nowhere else it is accepted.
struct SealedPlace: Sendable {
  static let nonceLength = 16

  /// Whose.
  let host: Pin
  /// Of the verifier, for this connection alone: 128 random bits.
  let nonce: [UInt8]
  /// How many sealed questions were accepted on the connection before it.
  var number: UInt64 = 0

  fileprivate var bytes: [UInt8] {
    host.bytes + nonce + (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }
}

/// The body of a frame of the kind 7, and of its answer: another frame, sealed from root's service
/// of a host to the verifiers, and back (docs/fleet-format.md).
enum SealedFrame {
  /// Of the frame that carries a question.
  static let kind: UInt8 = 0x07
  private static let form: UInt8 = 1
  private static let randomLength = 16
  /// Form, name of the keys, random.
  private static let headLength = 1 + SealKeys.nameLength + randomLength
  /// How many bytes more a sealed frame has at most than the one in it.
  static let most = headLength + SIV.tagLength + 2
  /// In front of what is authenticated beside the text: no question is an answer.
  private static let (asks, answers): (UInt8, UInt8) = (0x55, 0xaa)

  /// What an answer says beside: bits.
  struct Marks: OptionSet, Sendable {
    let rawValue: UInt8
    /// From now on the verifiers answer only what this host has sealed.
    static let onlySealed = Marks(rawValue: 1)
    /// There are keys after these: fetch them.
    static let newer = Marks(rawValue: 2)
  }

  // MARK: questions

  /// nil where random bytes, libcrypto or memory are short.
  static func question(_ kind: UInt8, _ body: Secret, _ keys: SealKeys, at place: SealedPlace)
    -> Secret?
  {
    var random = [UInt8](repeating: 0, count: randomLength)
    guard fill(&random), let text = text([kind], body) else { return nil }
    let head = [form] + keys.name + random
    return SIV.seal(text, keys.question, beside: [asks] + place.bytes + head)
      .flatMap { Self.text(head, $0) }
  }

  /// The name of the keys of such a body; nil: it is none.
  static func nameOfKeys(_ body: Secret) -> [UInt8]? {
    guard body.count > headLength, body[0] == form else { return nil }
    return body.bytes(in: 1..<1 + SealKeys.nameLength)
  }

  /// nil for one that these keys have not sealed for this place.
  static func open(question body: Secret, _ keys: SealKeys, at place: SealedPlace)
    -> (kind: UInt8, body: Secret)?
  {
    guard nameOfKeys(body) == keys.name else { return nil }
    let head = body.bytes(in: 0..<headLength)
    return SIV.open(body, from: headLength, keys.question, beside: [asks] + place.bytes + head)
      .flatMap { text in text.slice(1..<text.count).map { (text[0], $0) } }
  }

  // MARK: answers

  /// `digest`: `digest(ofQuestion:)` of the body that is answered.
  static func answer(
    _ kind: UInt8, _ body: Secret, marks: Marks, _ keys: SealKeys, to digest: [UInt8],
    at place: SealedPlace
  ) -> Secret? {
    text([marks.rawValue, kind], body).flatMap {
      SIV.seal($0, keys.answer, beside: [answers] + place.bytes + digest)
    }
  }

  /// nil for one that these keys have not sealed for this question.
  static func open(answer body: Secret, _ keys: SealKeys, to digest: [UInt8], at place: SealedPlace)
    -> (kind: UInt8, body: Secret, marks: Marks)?
  {
    guard
      let text = SIV.open(
        body, from: 0, keys.answer, beside: [answers] + place.bytes + digest),
      let rest = text.slice(min(2, text.count)..<text.count), text.count > 1
    else { return nil }
    return (text[1], rest, Marks(rawValue: text[0]))
  }

  /// Of the whole body of a sealed question, which no two have in common.
  static func digest(ofQuestion body: Secret) -> [UInt8]? { try? SHA256.digest(body) }

  private static func text(_ head: [UInt8], _ body: Secret) -> Secret? {
    var fields = Fields(writing: head.count + body.count)
    _ = fields.bytes(head, head.count)
    _ = fields.rest(body)
    return fields.written
  }
}
