import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// The first byte says what the rest is: the bytes of a file, or two states that are put into
  /// slots with a right checksum, which no mutation would find.
  // shows: power-cut, damage
  static let state = Fuzzer(name: "state") { input in
    var input = Input(input)
    let kind = input.byte()
    guard kind & 1 == 1 else {
      let bytes = input.remaining()
      if let current = read(bytes) { continues(bytes, current, torn: bytes) }
      return readsOnlyWholeFiles(fitted(bytes, StateRecord.fileSize))
    }
    let sequences = (input.number64(), input.number64())
    let length = Int(input.byte()) << 4
    let (first, second) = (input.bytes(length), input.remaining())
    let slots = [slot(first, sequences.0), slot(second, sequences.1)]
    picksTheNewerWholeSlot(slots, [sequences.0, sequences.1], [first, second])
  }
}

private let headerSize = 20
private let digestSize = 32

private func fitted(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
  Array(bytes.prefix(count)) + [UInt8](repeating: 0, count: max(0, count - bytes.count))
}

private func littleEndian(_ value: UInt64, bytes: Int) -> [UInt8] {
  (0..<bytes).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
}

/// A slot as docs/enrollment-format.md has it, with a right checksum.
private func slot(_ body: [UInt8], _ sequence: UInt64) -> [UInt8] {
  let room = StateRecord.slotSize - headerSize - digestSize
  let body = body.prefix(room)
  let record =
    Array("SPSTATE1".utf8) + littleEndian(sequence, bytes: 8)
    + littleEndian(UInt64(headerSize + body.count), bytes: 4) + body
  let digest = succeeds("SHA-256") { () throws(CryptoError) in try SHA256.digest(record) }
  return fitted(record, StateRecord.slotSize - digestSize) + digest
}

private func read(_ file: [UInt8]) -> StateRecord.Current? {
  do throws(StateRecord.Problem) {
    return try StateRecord.read(file)
  } catch {
    switch error {
    case .size: must(file.count != StateRecord.fileSize, "the size is right")
    case .bothSlotsBroken: break
    case .exhausted, .crypto: must(false, "\(error)")
    }
    return nil
  }
}

/// Bytes that nobody gave a checksum never read as a state.
private func readsOnlyWholeFiles(_ file: [UInt8]) {
  guard let current = read(file) else { return }
  continues(file, current, torn: file)
}

private func picksTheNewerWholeSlot(
  _ slots: [[UInt8]], _ sequences: [UInt64], _ bodies: [[UInt8]]
) {
  let nothing = [UInt8](repeating: 0, count: StateRecord.slotSize)
  let alone = [read(slots[0] + nothing), read(nothing + slots[1])]
  let file = slots[0] + slots[1]
  let current = read(file)
  switch (alone[0] != nil, alone[1] != nil) {
  case (false, false): must(current == nil, "a state out of two broken slots")
  case (true, false): must(current?.sequence == sequences[0], "not the whole slot")
  case (false, true): must(current?.sequence == sequences[1], "not the whole slot")
  case (true, true): must(current?.sequence == sequences.max(), "not the newer slot")
  }
  for case .some(let whole) in alone {
    let fresh = unwrapped(try? StateRecord.fresh(whole.state), "does not write what it read")
    let again = unwrapped(read(fresh), "does not read what it wrote")
    must(again.state == whole.state, "reads another state than it wrote")
  }
  if let current { continues(file, current, torn: bodies[0] + bodies[1]) }
}

/// A save keeps the state it followed until it is whole, whatever a torn write leaves.
private func continues(_ file: [UInt8], _ current: StateRecord.Current, torn: [UInt8]) {
  let next: [UInt8]
  do throws(StateRecord.Problem) {
    next = try StateRecord.next(current.state, after: current)
  } catch {
    return must(error == .exhausted && current.sequence == UInt64.max, "\(error)")
  }
  let place = current.nextOffset..<current.nextOffset + StateRecord.slotSize
  var saved = file
  saved.replaceSubrange(place, with: next)
  let after = unwrapped(read(saved), "a save that does not read")
  must(after.state == current.state && after.sequence == current.sequence + 1, "not what was saved")
  for length in Set([0, min(torn.count, StateRecord.slotSize), StateRecord.slotSize / 2]) {
    var damaged = file
    let rest = Array(file[place].dropFirst(length))
    damaged.replaceSubrange(place, with: fitted(next, length) + rest)
    let survivor = unwrapped(read(damaged), "a torn save that loses the state")
    let isOld = survivor.sequence == current.sequence && survivor.state == current.state
    let isNew = survivor.sequence == after.sequence && survivor.state == after.state
    must(isOld || isNew, "a torn save that reads as something else")
  }
}
