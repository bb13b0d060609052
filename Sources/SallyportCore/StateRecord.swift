package import OneTimePassword

/// The login state on disk: two slots of one page, each a whole record with a sequence number and
/// a checksum. A save writes the slot that does not count, so that a torn write loses nothing.
///
/// A slot, numbers little-endian: magic (8 bytes), sequence number (8), length in bytes of all that
/// the checksum covers (4), the state, zeros, and in the last 32 bytes SHA-256 of the first
/// `length` bytes.
package enum StateRecord {
  package static let slotSize = 4096
  package static let fileSize = 2 * slotSize

  /// Why a state file cannot be used.
  package enum Problem: Error, Equatable {
    /// Not `fileSize` bytes; or a state that no record holds.
    case size
    /// Neither slot holds a whole record.
    case bothSlotsBroken
    /// The sequence number cannot grow: no record of ours comes near.
    case exhausted
    case crypto(CryptoError)
  }

  /// The record that counts, and where the next one goes.
  package struct Current: Sendable {
    package let state: LoginState
    package let sequence: UInt64
    /// Bytes from the start of the file.
    package let nextOffset: Int
  }

  /// Picks the whole record with the greater sequence number.
  package static func read(_ file: [UInt8]) throws(Problem) -> Current {
    guard file.count == fileSize else { throw .size }
    let first = try decode(file[..<slotSize])
    let second = try decode(file[slotSize...])
    if let second, second.sequence > (first?.sequence ?? 0) {
      return Current(state: second.state, sequence: second.sequence, nextOffset: 0)
    }
    guard let first else { throw .bothSlotsBroken }
    return Current(state: first.state, sequence: first.sequence, nextOffset: slotSize)
  }

  /// The slot to write over the one that does not count.
  package static func next(_ state: LoginState, after current: Current)
    throws(Problem) -> [UInt8]
  {
    guard current.sequence < UInt64.max else { throw .exhausted }
    return try encode(state, sequence: current.sequence + 1)
  }

  /// The whole file of a fresh state: both slots written, no holes.
  package static func fresh(_ state: LoginState) throws(Problem) -> [UInt8] {
    try encode(state, sequence: 2) + encode(state, sequence: 1)
  }

  private static let magic = [UInt8]("SPSTATE1".utf8)
  private static let headerSize = 20
  private static let digestOffset = slotSize - 32

  private static func encode(_ state: LoginState, sequence: UInt64) throws(Problem) -> [UInt8] {
    // What could not be read again must not be written: it would lock the user out.
    guard state.authenticators.count <= Enrollment.maximumAuthenticators,
      state.origins.count <= LoginState.maximumOrigins
    else { throw .size }
    var record = ByteWriter()
    record.put(magic)
    record.put(sequence)
    record.put(UInt32(0))
    record.put(state)
    var bytes = record.bytes
    guard bytes.count <= digestOffset else { throw .size }
    for index in 0..<4 {
      bytes[16 + index] = UInt8(truncatingIfNeeded: bytes.count >> (8 * index))
    }
    let digest = try sha256(bytes[...])
    bytes += [UInt8](repeating: 0, count: digestOffset - bytes.count)
    return bytes + digest
  }

  /// nil where the slot holds no whole record.
  private static func decode(_ slot: ArraySlice<UInt8>) throws(Problem)
    -> (sequence: UInt64, state: LoginState)?
  {
    var header = ByteReader(slot)
    guard header.take(8) == magic[...], let sequence = header.number64(),
      let length = header.number32(), (headerSize...digestOffset).contains(Int(length))
    else { return nil }
    let covered = slot.prefix(Int(length))
    let digest = try sha256(covered)
    guard slot.dropFirst(digestOffset) == digest[...] else { return nil }
    var body = ByteReader(covered.dropFirst(headerSize))
    guard let state = body.loginState(), body.isAtEnd else { return nil }
    return (sequence, state)
  }

  private static func sha256(_ bytes: ArraySlice<UInt8>) throws(Problem) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest([UInt8](bytes))
    } catch {
      throw .crypto(error)
    }
  }
}
