import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

/// A user's rows as they came from the database.
struct Columns {
  /// nil for a decoy.
  let user: NameMark?
  /// What this verifier had seen of him before the question; nil: nothing, or a decoy.
  let seenBefore: LastSeen?
  /// nil: there is no row.
  var enrollment: [UInt8]?
  var state: [UInt8]?
  var version: UInt64?
  /// The values of the row `fleet` at the same moment.
  var distrust = Distrust(number: 0, time: UnixTime(0))
  /// The generation of the connections by which it came.
  var generation: UInt64 = 0

  /// Whether saves were lost since this verifier has seen him: what it had seen is of before then.
  var isSeenBeforeLoss: Bool { seenBefore.map { $0.distrust < distrust.number } ?? false }
  /// The same, and he was not enrolled: so he may be unknown, or counted less often, by now.
  var isStrangerOfBeforeLoss: Bool { isSeenBeforeLoss && seenBefore?.isEnrolled == false }
}

/// How often saves were lost, and when last.
struct Distrust: Equatable, Sendable {
  let number: UInt64
  let time: UnixTime
}

/// A user's rows, opened and checked.
struct Row {
  let document: FleetDocument
  /// nil for a user who is not enrolled.
  var state: LoginState?
  let mark: RowVersion
  /// Whether a save of this user was lost.
  let isBehind: Bool
  /// How often saves of any user may have been lost since it was saved.
  let losses: UInt64
  var isDistrusted: Bool { losses > 0 }
  let seen: LastSeen
}

/// By which a row is known again: the digest of the enrollment and its serial, the version that a
/// save expects and the one that it writes, the distrust that it was loaded with, and the
/// connections by which it came.
struct RowVersion: Equatable {
  var digest: [UInt8]
  var serial: UInt64
  let version: UInt64
  let next: UInt64
  let distrust: UInt64
  let generation: UInt64

  var bytes: [UInt8] {
    [version, next, serial, distrust, generation].flatMap { number($0) } + digest
  }

  /// Whether it is the same document, which was sealed with another key meanwhile: a change gives
  /// it another serial.
  func isResealed(since old: RowVersion) -> Bool {
    serial == old.serial && distrust == old.distrust && version > old.version
  }
}

extension RowVersion {
  init(_ bytes: [UInt8]) {
    let numbers = (0..<5).map { number(bytes.dropFirst(8 * $0).prefix(8)) }
    self.init(
      digest: [UInt8](bytes.dropFirst(40)), serial: numbers[2], version: numbers[0],
      next: numbers[1], distrust: numbers[3], generation: numbers[4])
  }

  /// Of a user without rows.
  init(ofNothing columns: Columns) {
    self.init(
      digest: [], serial: 0, version: 0, next: 1, distrust: columns.distrust.number,
      generation: columns.generation)
  }
}

/// Faults of a user's rows. Each means that somebody without the key changed them, or that a part
/// of them was lost.
enum RowFault: Error, Equatable {
  /// There are no rows, but this verifier has seen some.
  case gone
  case noState
  case sealed(SealFault)
  case unreadable
  /// The enrollment is another user's.
  case otherUser
  /// The state was saved for another enrollment.
  case otherEnrollment
  /// Older than the version that this verifier has seen.
  case behind
  /// The same version as this verifier has seen, with another content.
  case twin
  /// Saved under a higher distrust than the fleet has.
  case future(UInt64)
  case exhausted
  case crypto(CryptoError)

  var text: StaticString {
    switch self {
    case .gone: "the rows are gone from the database"
    case .noState: "the row of the state is missing"
    case .sealed(.otherKey): "a row is sealed with another key than this verifier's"
    case .sealed(.forged): "a row was modified or rolled back, or belongs to another user"
    case .unreadable: "a row cannot be read"
    case .otherUser: "the enrollment belongs to another user"
    case .otherEnrollment: "the state was saved for another enrollment"
    case .behind: "the rows were rolled back to before a change of the enrollment"
    case .twin: "the saved state was replaced by another one"
    case .future: "the fleet row is older than this user's: it was rolled back"
    case .exhausted: "the version cannot grow any more"
    case .crypto, .sealed(.crypto): "libcrypto failed"
    }
  }
}

extension FleetKey {
  /// Of a state whose owner is told nothing, and of one with what she is told in front.
  private static let (form, withNotices): (UInt8, UInt8) = (1, 2)

  /// Opens both columns.
  func row(_ columns: Columns, of name: [UInt8]) throws(RowFault) -> Row {
    guard let enrollment = columns.enrollment, let state = columns.state,
      let version = columns.version
    else { throw .noState }
    let digest = try digest(of: enrollment)
    let opened = try open(enrollment, state, version: version, of: name)
    let form = opened.body.first
    guard form == Self.form || form == Self.withNotices else { throw .unreadable }
    let body = opened.body.dropFirst()
    // Of a decoy, which logins save without looking, it may be of before it was sealed again.
    guard columns.user == nil || body.starts(with: digest) else { throw .otherEnrollment }
    let trusted = number(body.dropFirst(digest.count).prefix(8))
    let kept = try read(
      [UInt8](body.dropFirst(digest.count + 8)), form == Self.withNotices,
      beside: opened.document)
    let seen = LastSeen(
      version: version, serial: opened.document.serial,
      digest: number(try self.digest(of: state)), distrust: columns.distrust.number,
      opened.document.enrollment, kept)
    let isBehind = try isBehind(seen, columns)
    // It could be from before he enrolled.
    if isBehind, kept == nil { throw .behind }
    guard trusted <= columns.distrust.number else { throw .future(trusted) }
    let mark = RowVersion(
      digest: digest, serial: seen.serial, version: version,
      next: try successor(of: max(version, columns.seenBefore?.version ?? 0)),
      distrust: columns.distrust.number, generation: columns.generation)
    return Row(
      document: opened.document, state: kept, mark: mark, isBehind: isBehind,
      losses: DistrustNumber.losses(from: trusted, to: columns.distrust.number), seen: seen)
  }

  private func open(
    _ enrollment: [UInt8], _ state: [UInt8], version: UInt64, of name: [UInt8]
  ) throws(RowFault) -> (document: FleetDocument, body: [UInt8]) {
    let (opened, body) = try rethrow(
      { () throws(SealFault) in
        (
          try open(enrollment, .enrollment, of: name),
          try open(state, .state(version: version), of: name)
        )
      }, as: RowFault.sealed)
    guard let document = FleetDocument.read(opened) else { throw .unreadable }
    return (document, body.bytes(in: 0..<body.count))
  }

  private func read(_ bytes: [UInt8], _ hasNotices: Bool, beside document: FleetDocument)
    throws(RowFault) -> LoginState?
  {
    guard let enrolled = document.enrollment else {
      guard bytes.isEmpty, !hasNotices else { throw .unreadable }
      return nil
    }
    let length = hasNotices ? OwnerNotices.length : 0
    guard var state = LoginState.read([UInt8](bytes.dropFirst(length))) else {
      throw .unreadable
    }
    if hasNotices {
      guard let notices = OwnerNotices([UInt8](bytes.prefix(length))) else { throw .unreadable }
      state.notices = notices
    }
    guard state.enrollmentID == enrolled.id else { throw .otherEnrollment }
    return state
  }

  /// Whether what was seen before is more. After a restore that was found a row may come to the
  /// same version again: that is no twin.
  private func isBehind(_ seen: LastSeen, _ columns: Columns) throws(RowFault) -> Bool {
    guard let before = columns.seenBefore else { return false }
    let isTwin = seen.version == before.version && seen.digest != before.digest
    if isTwin, !columns.isSeenBeforeLoss { throw .twin }
    if !seen.isEnrolled, columns.isStrangerOfBeforeLoss { return false }
    if seen.serial < before.serial { throw .behind }
    return isTwin || seen.version < before.version || before.hasMore(than: seen)
  }

  /// The two bodies. The document has the serial that it is to have.
  func bodies(
    _ document: FleetDocument, _ state: LoginState?, _ mark: RowVersion, of name: [UInt8]
  ) throws(RowFault) -> (enrollment: [UInt8], state: [UInt8]) {
    guard let text = document.written() else { throw .crypto(.outOfMemory) }
    let enrollment = try rethrow(
      { () throws(SealFault) in try seal(text, .enrollment, of: name) }, as: RowFault.sealed)
    var mark = mark
    mark.digest = try digest(of: enrollment)
    return (enrollment, try body(state, mark, of: name))
  }

  func body(
    _ state: LoginState?, _ mark: RowVersion, of name: [UInt8]
  ) throws(RowFault) -> [UInt8] {
    let notices = state?.notices ?? OwnerNotices()
    let isTold = notices.withoutPlace != OwnerNotices()
    var bytes = [isTold ? Self.withNotices : Self.form] + mark.digest + number(mark.distrust)
    if isTold { bytes += notices.bytes }
    if let state {
      guard let fields = state.written() else { throw .unreadable }
      bytes += fields
    }
    guard let text = Secret(bytes) else { throw .crypto(.outOfMemory) }
    return try rethrow(
      { () throws(SealFault) in try seal(text, .state(version: mark.next), of: name) },
      as: RowFault.sealed)
  }

  func digest(of body: [UInt8]) throws(RowFault) -> [UInt8] {
    try rethrow({ () throws(CryptoError) in try SHA256.digest(body) }, as: RowFault.crypto)
  }

  private func successor(of version: UInt64) throws(RowFault) -> UInt64 {
    guard version < UInt64(Int64.max) else { throw .exhausted }
    return version + 1
  }
}

extension LoginState {
  /// As if strangers had used up their whole budget.
  var closedToStrangers: LoginState {
    var state = self
    // A time in the future counts as now.
    state.other = Bucket(
      spent: GuessProbability.budgets.upperBound, since: UnixTime(Int64.max / 4))
    return state
  }
}
