package import FleetProtocol
package import OneTimePassword
package import SallyportAdministration
package import SallyportCore

/// A user's record in a fleet, without what logins change: the column `enrollment.body`
/// (docs/fleet-format.md).
package struct FleetDocument: Sendable {
  /// Whether the user is enrolled, and by what.
  package enum EnrollmentPlace: Sendable {
    case enrolled(Enrollment)
    case notEnrolled
    /// He was enrolled, by the enrollment of this id.
    case removed(UInt64)
    /// He was, by that one, and this host has it in its files now. The token proves to the host
    /// that it took the enrollment itself.
    case taken(UInt64, token: UInt64, host: FleetHostName)
  }

  package var place: EnrollmentPlace
  /// Not read while he is enrolled.
  package var note: UserNote
  /// Logins of a user who is not enrolled, counted for `enrollment = remind`.
  package var logins: UInt32
  /// The version of the state beside which it was written: an older document that is put back has
  /// a lower one.
  package var serial: UInt64
  /// The last enrollments that ended before, oldest first: no copy of them can come
  /// back.
  package var ended: [UInt64]
  /// Nothing of his is accepted, and nothing enrolls him, whatever else is said here.
  package var block: FleetBlock?
  /// What passes have replaced; only what the enrollment names is kept.
  package var suspended: [SuspendedEnrollment] = []
  /// What helpers did for him lately, passes and unlocks.
  package var helped = HelpCounts()

  /// How many are remembered.
  static let mostEnded = 16

  package init(
    _ place: EnrollmentPlace, note: UserNote = UserNote(), logins: UInt32 = 0,
    serial: UInt64 = 0,
    ended: [UInt64] = [], block: FleetBlock? = nil
  ) {
    (self.place, self.note, self.logins, self.serial) = (place, note, logins, serial)
    (self.ended, self.block) = (ended, block)
  }

  /// Enrolls him by this enrollment.
  mutating func begin(_ enrollment: Enrollment) {
    switch place {
    case .removed(let id), .taken(let id, _, _): ended.append(id)
    case .enrolled, .notEnrolled: break
    }
    // A host may bring back what it has taken.
    ended = ended.filter { $0 != enrollment.id }.suffix(Self.mostEnded)
    // Hosts differ in uids: a row with one is not read.
    place = .enrolled(enrollment.with(uid: nil))
  }

  /// Whether the enrollment of this id has ended, and this host's copy of it cannot undo that.
  func hasEnded(_ id: UInt64, for host: [UInt8]) -> Bool {
    switch place {
    case .removed(id): true
    case .taken(id, _, let holder): holder.bytes != host
    case .removed, .taken, .enrolled, .notEnrolled: ended.contains(id)
    }
  }

  /// What is kept with the document.
  fileprivate var named: [SuspendedEnrollment] {
    guard let enrollment else { return [] }
    return suspended.filter { one in enrollment.suspended.contains { $0.id == one.id } }
  }

  /// nil where he is not.
  package var enrollment: Enrollment? {
    if case .enrolled(let enrollment) = place { enrollment } else { nil }
  }
}

// The document: form (1 byte), place (1), level (1), the time from which the level holds (8,
// -1 for at once), logins (4), serial (8); in form 2 how many ended before (1, 1 to 16) and their
// ids (8 each); in form 3 the same (1, 0 to 16), what follows (1, a sum of 1, 2 and 4), 1 a block:
// since when (8), up to when (8, -1 for without an end), and the helper's name after its length; 2
// what is suspended (1, 1 to 8): of each id (8), state after its length (2), and enrollment as its
// file after its length (4); 4 what helpers did lately (1, 1 to 3): of each what (1; 1 a pass, 2 an
// unlock) and when (8); and behind that the enrollment as its file, or the id of the removed
// one (8) and, if a host took it, the token (8) and the name of the host, or nothing. Each form is
// written only for what the one before has no place for: verifiers of the former version know no
// form 3.
extension FleetDocument {
  private static let headLength = 23

  private func form(_ suspended: [SuspendedEnrollment]) -> UInt8 {
    let hasMore = block != nil || !suspended.isEmpty || !helped.acts.isEmpty
    return hasMore ? 3 : ended.isEmpty ? 1 : 2
  }

  /// nil if memory is short.
  package func written() -> Secret? {
    let suspended = named
    let form = form(suspended)
    var more = form > 1 ? endedBytes : []
    if form == 3 {
      let kinds = (block == nil ? 0 : 1) + (suspended.isEmpty ? 0 : 2)
      more.append(UInt8(kinds + (helped.acts.isEmpty ? 0 : 4)))
    }
    more += block?.bytes ?? []
    if !suspended.isEmpty { more.append(UInt8(truncatingIfNeeded: suspended.count)) }
    let kept = suspended.compactMap { $0.written() }
    guard kept.count == suspended.count else { return nil }
    let room = kept.reduce(65_536) { $0 + $1.count }
    var text = SecretText(capacity: room + Self.headLength + more.count)
    for byte in head(form) + more { text.put(byte) }
    for one in kept { text.add(one) }
    for byte in helped.bytes { text.put(byte) }
    switch place {
    case .enrolled(let enrollment):
      guard let enrollment = enrollment.written() else { return nil }
      text.add(enrollment)
    case .notEnrolled: break
    case .removed(let id): for byte in number(id) { text.put(byte) }
    case .taken(let id, let token, let host):
      for byte in number(id) + number(token) + host.bytes { text.put(byte) }
    }
    return text.finish()
  }

  private var endedBytes: [UInt8] {
    [UInt8(truncatingIfNeeded: ended.count)] + ended.flatMap { number($0) }
  }

  private func head(_ form: UInt8) -> [UInt8] {
    let place: UInt8 =
      switch self.place {
      case .enrolled: 1
      case .notEnrolled: 2
      case .removed: 3
      case .taken: 4
      }
    let (level, from): (UInt8, Int64) =
      switch note.level {
      case nil: (0, -1)
      case .required(let from): (1, from?.seconds ?? -1)
      case .exempt(let until): (2, until?.seconds ?? -1)
      }
    return [form, place, level] + number(UInt64(bitPattern: from))
      + Array(number(UInt64(logins)).prefix(4)) + number(serial)
  }

  /// Total: any text gives a document that `written` gives, of an enrollment without a uid, or nil.
  package static func read(_ text: Secret) -> FleetDocument? {
    let head = text.bytes(in: 0..<headLength)
    guard head.count == headLength, let (ended, end) = ended(text, head[0]),
      let later = later(text, head[0], from: end)
    else { return nil }
    let (block, suspended, helped, start) = later
    let rest = start..<text.count
    let from = Int64(bitPattern: number(head[3..<11]))
    guard let place = place(head[1], text, rest), let note = note(head[2], from) else {
      return nil
    }
    var document = FleetDocument(
      place, note: note, logins: UInt32(truncatingIfNeeded: number(head[11..<15])),
      serial: number(head[15..<23]), ended: ended, block: block)
    (document.suspended, document.helped) = (suspended, helped)
    return document.named.count == suspended.count ? document : nil
  }

  /// Those that ended before, and where they end themselves.
  private static func ended(_ text: Secret, _ form: UInt8) -> ([UInt64], Int)? {
    if form == 1 { return ([], headLength) }
    guard form == 2 || form == 3, text.count > headLength else { return nil }
    let count = Int(text[headLength])
    let ids = (headLength + 1)..<(headLength + 1 + 8 * count)
    guard (form == 2 ? 1...mostEnded : 0...mostEnded).contains(count), ids.upperBound <= text.count
    else { return nil }
    let bytes = text.bytes(in: ids)
    return ((0..<count).map { number(bytes[8 * $0..<8 * $0 + 8]) }, ids.upperBound)
  }

  /// What form 3 has, and where it ends.
  private static func later(_ text: Secret, _ form: UInt8, from start: Int)
    -> (FleetBlock?, [SuspendedEnrollment], HelpCounts, Int)?
  {
    if form < 3 { return (nil, [], HelpCounts(), start) }
    guard start < text.count, (1...7).contains(text[start]) else { return nil }
    var (block, place) = (FleetBlock?.none, start + 1)
    var (suspended, helped) = ([SuspendedEnrollment](), HelpCounts())
    if text[start] & 1 != 0 {
      let bytes = text.bytes(in: place..<min(place + 17 + 255, text.count))
      guard let (found, count) = FleetBlock.read(bytes) else { return nil }
      (block, place) = (found, place + count)
    }
    if text[start] & 2 != 0 {
      guard let (found, end) = SuspendedEnrollment.readAll(text, from: place) else { return nil }
      (suspended, place) = (found, end)
    }
    if text[start] & 4 != 0 {
      let bytes = text.bytes(in: place..<min(place + HelpCounts.longest, text.count))
      guard let (found, count) = HelpCounts.read(bytes) else { return nil }
      (helped, place) = (found, place + count)
    }
    return (block, suspended, helped, place)
  }

  private static func place(_ kind: UInt8, _ text: Secret, _ rest: Range<Int>)
    -> EnrollmentPlace?
  {
    switch kind {
    case 1:
      guard let body = text.slice(rest), let enrollment = try? Enrollment.read(body),
        enrollment.uid == nil
      else { return nil }
      return .enrolled(enrollment)
    case 2: return rest.isEmpty ? .notEnrolled : nil
    case 3:
      let id = number(text.bytes(in: rest))
      return rest.count == 8 && id != 0 ? .removed(id) : nil
    case 4:
      let bytes = text.bytes(in: rest)
      let (id, token) = (number(bytes.prefix(8)), number(bytes.dropFirst(8).prefix(8)))
      guard id != 0, token != 0, let host = FleetHostName(Array(bytes.dropFirst(16))) else {
        return nil
      }
      return .taken(id, token: token, host: host)
    case _: return nil
    }
  }

  private static func note(_ level: UInt8, _ from: Int64) -> UserNote? {
    switch (level, from) {
    case (0, -1): UserNote()
    case (1, -1): UserNote(level: .required(from: nil))
    case (1, 0...): UserNote(level: .required(from: UnixTime(from)))
    case (2, -1): UserNote(level: .exempt(until: nil))
    case (2, 0...): UserNote(level: .exempt(until: UnixTime(from)))
    case _: nil
    }
  }
}

extension FleetBlock {
  fileprivate var bytes: [UInt8] {
    let times = [since.seconds, until?.seconds ?? -1]
    let name = helper?.bytes ?? []
    return times.flatMap { number(UInt64(bitPattern: $0)) }
      + [UInt8(truncatingIfNeeded: name.count)] + name
  }

  /// From the beginning of these, and how many they were.
  fileprivate static func read(_ bytes: [UInt8]) -> (FleetBlock, Int)? {
    guard bytes.count > 16, bytes.count >= 17 + Int(bytes[16]) else { return nil }
    let since = Int64(bitPattern: number(bytes[0..<8]))
    let until = Int64(bitPattern: number(bytes[8..<16]))
    let name = Array(bytes[17..<17 + Int(bytes[16])])
    let helper = UserName(name)
    guard since >= 0, until >= -1, helper != nil || name.isEmpty else { return nil }
    let block = FleetBlock(
      since: UnixTime(since), until: until < 0 ? nil : UnixTime(until), helper: helper)
    return (block, 17 + name.count)
  }
}

extension HelpCounts {
  /// Two passes and an unlock.
  private static let most = 3
  private static let kinds: [(Word, UInt8)] = [(.pass, 1), (.unlock, 2)]
  fileprivate static let longest = 1 + 9 * most

  fileprivate var bytes: [UInt8] {
    let known = acts.suffix(Self.most).flatMap { act in
      Self.kinds.filter { $0.0 == act.word }.flatMap {
        [$0.1] + number(UInt64(bitPattern: act.time.seconds))
      }
    }
    return known.isEmpty ? [] : [UInt8(truncatingIfNeeded: known.count / 9)] + known
  }

  /// From the beginning of these, and how many they were.
  fileprivate static func read(_ bytes: [UInt8]) -> (HelpCounts, Int)? {
    guard let count = bytes.first.map({ Int($0) }), (1...most).contains(count),
      bytes.count > 9 * count
    else { return nil }
    var acts: [(word: Word, time: UnixTime)] = []
    for start in (0..<count).map({ 1 + 9 * $0 }) {
      let time = Int64(bitPattern: number(bytes[start + 1..<start + 9]))
      guard time >= 0, let kind = kinds.first(where: { $0.1 == bytes[start] }) else { return nil }
      acts.append((kind.0, UnixTime(time)))
    }
    return (HelpCounts(acts), 1 + 9 * count)
  }
}
