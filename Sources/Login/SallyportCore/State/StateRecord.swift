package import OneTimePassword

/// The login state on disk: two slots of one page each, which hold a complete record with a
/// sequence number and a checksum. A save writes the slot that is not in effect, so that a torn
/// write loses nothing.
///
/// A slot, with little-endian numbers: magic (8 bytes), sequence number (8), number of bytes that
/// the checksum covers (4), the state, zeros, and in the last 32 bytes the SHA-256 of the first
/// `length` bytes.
package enum StateRecord {
  package static let slotSize = 4096
  package static let fileSize = 2 * slotSize

  /// Why a state file cannot be used.
  package enum Problem: Error, Equatable {
    /// Not `fileSize` bytes, or a state that does not fit into a record.
    case size
    /// Neither slot holds a complete record.
    case bothSlotsBroken
    /// The sequence number cannot grow any more, which our own records never reach.
    case exhausted
    case crypto(CryptoError)
  }

  /// The record in effect, and the offset for the next one.
  package final class Current: Sendable {
    package let state: LoginState
    package let sequence: UInt64
    /// In bytes from the start of the file.
    package let nextOffset: Int
    /// Whether the other slot does not hold the record before this one, as it does after every
    /// save: it was torn or destroyed, and may have held a later record.
    package let mayLackTheLatest: Bool

    init(state: LoginState, sequence: UInt64, nextOffset: Int, mayLackTheLatest: Bool) {
      self.state = state
      self.sequence = sequence
      self.nextOffset = nextOffset
      self.mayLackTheLatest = mayLackTheLatest
    }
  }

  /// Returns the complete record with the greater sequence number.
  package static func read(_ file: [UInt8]) throws(Problem) -> Current {
    guard file.count == fileSize else { throw .size }
    // The other slot is read only if this one is broken, whatever its number is then.
    let isSecondNewer = sequence(file, slotAt: slotSize) > sequence(file, slotAt: 0)
    let newer = isSecondNewer ? slotSize : 0
    if let current = try decode(file, slotAt: newer) { return current }
    if let current = try decode(file, slotAt: slotSize - newer) { return current }
    throw .bothSlotsBroken
  }

  /// Whether the slot begins like the record with this number. That is enough: damage further on in
  /// an older record loses nothing, and a newer one would have another number.
  private static func isRecord(_ number: UInt64, _ file: [UInt8], slotAt start: Int) -> Bool {
    var header = ByteReader(file, start..<start + 8)
    return header.number64() == magic && sequence(file, slotAt: start) == number
  }

  /// The bytes where a slot has its sequence number.
  private static func sequence(_ file: [UInt8], slotAt start: Int) -> UInt64 {
    var number = ByteReader(file, start + 8..<start + 16)
    return number.number64()
  }

  /// The slot to write over the one that is not in effect; `current` is nil if neither is.
  package static func next(_ state: LoginState, after current: Current?)
    throws(Problem) -> [UInt8]
  {
    guard let current else { return try encode(state, sequence: 2) }
    guard current.sequence < UInt64.max else { throw .exhausted }
    return try encode(state, sequence: current.sequence + 1)
  }

  /// A new file with both slots written, so that it has no holes.
  package static func fresh(_ state: LoginState) throws(Problem) -> [UInt8] {
    try encode(state, sequence: 2) + encode(state, sequence: 1)
  }

  /// "SPSTATE1", as a number.
  private static let magic: UInt64 = 0x3145_5441_5453_5053
  private static let headerSize = 20
  private static let digestOffset = slotSize - 32
  /// No state of ours reaches it; where one does, there are no notices.
  private static let noticesOffset = digestOffset - OwnerNotices.size

  @inline(never) private static func encode(_ state: LoginState, sequence: UInt64)
    throws(Problem) -> [UInt8]
  {
    // A record that cannot be read again must not be written, as it would lock the user out.
    guard state.authenticators.count <= Enrollment.maximumAuthenticators,
      state.origins.count <= LoginState.readableOrigins,
      state.remembered.count <= LoginState.maximumRemembered,
      state.passes.count <= Pass.maximumOpen
    else { throw .size }
    var page = ByteWriter(count: slotSize)
    page.position = headerSize
    page.put(state)
    let length = page.position
    page.position = 0
    page.put(magic)
    page.put(sequence)
    page.put(UInt64(length), bytes: 4)
    if length <= noticesOffset, state.notices != OwnerNotices() {
      page.position = noticesOffset
      state.notices.put(into: &page)
    }
    page.position = digestOffset
    guard page.isWhole, length <= digestOffset else { throw .size }
    page.put(try sha256(page.bytes, 0..<length))
    return page.bytes
  }

  /// Returns nil if the slot does not hold a complete record.
  @inline(never) private static func decode(_ file: [UInt8], slotAt start: Int)
    throws(Problem) -> Current?
  {
    var header = ByteReader(file, start..<start + headerSize)
    guard header.number64() == magic else { return nil }
    let sequence = header.number64()
    let length = Int(truncatingIfNeeded: header.number(bytes: 4))
    guard (headerSize...digestOffset).contains(length) else { return nil }
    var end = ByteReader(file, start + digestOffset..<start + slotSize)
    guard same(try sha256(file, start..<start + length), end.take(32)) else { return nil }
    var body = ByteReader(file, start + headerSize..<start + length)
    var state = body.loginState()
    guard body.isWhole, body.isAtEnd else { return nil }
    if length <= noticesOffset {
      var tail = ByteReader(file, start + noticesOffset..<start + digestOffset)
      state.notices = OwnerNotices(from: &tail)
    }
    let other = start == 0 ? slotSize : 0
    return Current(
      state: state, sequence: sequence, nextOffset: other,
      mayLackTheLatest: !isRecord(sequence &- 1, file, slotAt: other))
  }

  private static func sha256(_ bytes: [UInt8], _ range: Range<Int>) throws(Problem) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest(bytes, in: range)
    } catch {
      throw .crypto(error)
    }
  }
}
