import CService
import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport

extension Statement {
  /// $1 a verifier: the number of its row in `state`, and the row of the fleet.
  fileprivate static let mark = """
    SELECT (SELECT version FROM state WHERE name = \(witness(1))),
      needs, writes, distrust, distrusted, seal FROM fleet
    """
}

/// How far a verifier was, in which database: hosts keep it, and show it. Where the database has
/// less, it was put back, also where its verifiers were put back with it.
struct Mark: Equatable, Sendable {
  /// Which database it was.
  var incarnation: [UInt8]
  /// The number of distrust that the verifier knew.
  var distrust: UInt64
  /// Of its row in `state`, which each beat raises.
  var n: UInt64
  var verifier: [UInt8]
  /// Nobody without the key makes one.
  var seal: [UInt8] = []

  private static let name: StaticString = "mark"

  private var fields: [[UInt8]] { [incarnation, number(distrust), number(n), verifier] }

  func sealed(under key: FleetKey) throws(CryptoError) -> Mark {
    var mark = self
    mark.seal = try key.bind(Self.name, fields)
    return mark
  }

  func isRight(under key: FleetKey) -> Bool { key.isRight(seal, Self.name, fields) }
}

extension Mark: FrameBody {
  static let longest = Ping.longestMark

  static func pass(_ mark: Self?, _ fields: inout Fields) -> Self? {
    Self(
      incarnation: fields.bytes(mark?.incarnation, Database.incarnationLength),
      distrust: fields.number(mark?.distrust), n: fields.number(mark?.n),
      verifier: fields.counted(mark?.verifier),
      seal: fields.bytes(mark?.seal, FleetKey.sealLength))
  }
}

extension Database {
  /// What a host is given to keep that has shown this; empty where this verifier does not know
  /// which database it works with. Throws where logins are refused, also because of what was shown.
  func mark(after shown: [UInt8], on host: [UInt8]) throws(DatabaseFault) -> [UInt8] {
    if isAway { throw .away }
    if !shown.isEmpty { try check(shown, on: host) }
    // The number that was known when this one was acknowledged: a higher one that is known by now
    // may be of a loss that this verifier has not found yet.
    let (incarnation, own) = books.withLock { ($0.incarnation, $0.acknowledged[Books.witness]) }
    guard let incarnation, let own else { return [] }
    let mark = Mark(
      incarnation: Array(incarnation.prefix(Self.incarnationLength)), distrust: own.distrust,
      n: own.n, verifier: verifier)
    let frame = try Self.sealing { () throws(CryptoError) in try mark.sealed(under: key).frame }
    return frame.map { $0.bytes(in: 0..<$0.count) } ?? []
  }

  private func check(_ shown: [UInt8], on host: [UInt8]) throws(DatabaseFault) {
    let mark = Secret(shown).flatMap { Mark.read($0) }
    // By a key of the fleet that nothing needs any more it is too old.
    if let mark, let id = FleetKey.id(of: mark.seal), key.key(id) == nil { return }
    let name = String(decoding: host, as: UTF8.self)
    guard let mark, mark.isRight(under: key) else {
      counts.note(bytes(of: "forged-mark"), on: host)
      if counts.takeFree(on: host, at: sys_monotonic(), in: .log).isWritten {
        alert("host \(name) shows a mark that no verifier has made: it is ignored")
      }
      return
    }
    guard try isAhead(mark) else { return }
    lose(
      "host \(name) has a mark of a later state: the database went back",
      lost: mark.distrust)
    throw .away
  }

  /// Whether the database has less than this says. What was seen under an earlier number of
  /// distrust was lost then.
  private func isAhead(_ mark: Mark) throws(DatabaseFault) -> Bool {
    let (incarnation, highest, known) = books.withLock { books in
      (
        books.incarnation?.prefix(Self.incarnationLength), books.highest,
        mark.verifier == verifier
          ? books.acknowledged[Books.witness]?.n : books.seen[mark.verifier]?.mark
      )
    }
    guard incarnation?.elementsEqual(mark.incarnation) == true, mark.distrust >= highest else {
      return false
    }
    if mark.distrust == highest, mark.n <= known ?? 0 { return false }
    // What is known of another verifier may be older than its mark.
    let (rows, _) = try ask(Statement.mark, [.text(mark.verifier)])
    guard let now = fleet(rows, 0, from: 1, since: highest) else { throw .away }
    return mark.distrust > now.distrust
      || mark.distrust == now.distrust && mark.n > rows.number(0, 0) ?? 0
  }
}
