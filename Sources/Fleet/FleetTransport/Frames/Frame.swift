import OneTimePassword
import SallyportCore

/// A frame: the length of kind and body (4 bytes, little-endian, 1 to 65,600), a nonce (8 bytes,
/// the answer repeats it), the kind (1 byte), and the body.
///
/// When the handshake is done the verifier sends one without being asked, with the nonce 0 and the
/// kind 0x84; the body is the form of the frames, 1, and what else a `Greeting` has. Hosts of the
/// former version do not read that, and who is none of the fleet learns when he asks that nobody
/// answers him here. A verifier of the former version greets a stranger with 0xed. One more with
/// the nonce 0, 0xec and no body, says that it is about to end, or has no room for this connection:
/// nothing more is to be asked on it.
///
/// The body of the kind 7 is another frame, sealed (`SealedFrame`).
enum Frame {
  static let headLength = 12
  /// Of kind and body; and of what is sealed, whose text has that.
  static let longest = 65_600
  private static let longestSealed = longest + SealedFrame.most
  static let form: UInt8 = 1

  /// nil where the body is too long, or memory is short.
  static func make(_ nonce: UInt64, _ kind: UInt8, _ body: Secret) -> Secret? {
    guard body.count < longest(of: kind) else { return nil }
    var fields = Fields(writing: headLength + 1 + body.count)
    _ = fields.length(body.count + 1, bytes: 4)
    _ = fields.number(nonce)
    _ = fields.byte(kind)
    _ = fields.rest(body)
    return fields.written
  }

  /// Of a frame of this kind; nil: of any.
  static func longest(of kind: UInt8?) -> Int {
    kind.map { $0 & 0x7f == SealedFrame.kind } ?? true ? longestSealed : longest
  }

  /// One that nobody can guess, and never 0. nil where the kernel has none.
  static func newNonce() -> UInt64? {
    var bytes = [UInt8](repeating: 0, count: 8)
    guard fill(&bytes) else { return nil }
    let nonce = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return nonce == 0 ? nil : nonce
  }
}

/// Reads frames of a connection, as much at a time as is there.
final class FrameReader {
  enum Progress {
    case whole(nonce: UInt64, kind: UInt8, body: Secret)
    /// `isBegun`: a part of it is here.
    case more(toWrite: Bool, isBegun: Bool)
    /// The connection has ended, or what came is no frame.
    case over
    case unpinned
  }

  private let longest: Int
  private var head = Secret(count: Frame.headLength)
  private var rest: Secret?
  private var have = 0

  init(longest: Int = Frame.longest(of: nil)) { self.longest = longest }

  /// Reads on. Not to be called again after anything but `whole` and `more`.
  func advance(_ connection: TLSConnection) -> Progress {
    while true {
      guard let room = rest ?? head else { return .over }
      switch connection.read(into: room, from: have, upTo: room.count) {
      case .done(let count): have += count
      case .moreIn: return .more(toWrite: false, isBegun: have > 0 || rest != nil)
      case .moreOut: return .more(toWrite: true, isBegun: have > 0 || rest != nil)
      case .gone: return .over
      case .unpinned: return .unpinned
      }
      guard have == room.count else { continue }
      have = 0
      if rest != nil { return whole(room) }
      guard let length = length(room), let next = Secret(count: length) else { return .over }
      rest = next
    }
  }

  private func length(_ head: Secret) -> Int? {
    let length = (0..<4).reduce(0) { $0 | Int(head[$1]) << (8 * $1) }
    return (1...longest).contains(length) ? length : nil
  }

  private func whole(_ content: Secret) -> Progress {
    rest = nil
    guard let head, let body = content.slice(1..<content.count) else { return .over }
    let nonce = (0..<8).reduce(UInt64(0)) { $0 | UInt64(head[4 + $1]) << UInt64(8 * $1) }
    return .whole(nonce: nonce, kind: content[0], body: body)
  }
}
