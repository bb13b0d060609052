package import OneTimePassword

/// The fields of a frame, one after the other, as they are written or read: one description serves
/// both. Each function is given the value to write, or nil to read one, and gives the value. What
/// has no place in a frame, or is invalid, makes the whole invalid (`isWhole`). They may be
/// secrets: what holds them is wiped.
///
/// The programs read and write by it. The module, which would carry both ways of it, writes
/// questions and reads answers by a `ByteWriter` and a `ByteReader`.
package struct Fields {
  private let frame: Secret?
  private let isWriting: Bool
  private var position: Int
  private var isValid: Bool

  /// At most this many bytes.
  package init(writing longest: Int) { self.init(Secret(count: longest), from: 0, writing: true) }

  /// From the byte at `start` on.
  package init(reading frame: Secret, from start: Int = 0) {
    self.init(frame, from: min(start, frame.count), writing: false)
  }

  private init(_ frame: Secret?, from start: Int, writing: Bool) {
    (self.frame, position, isWriting, isValid) = (frame, start, writing, frame != nil)
  }

  package var isWhole: Bool { isValid && (isWriting || left == 0) }
  /// What was written; nil if it is not whole.
  package var written: Secret? { isWhole ? frame?.slice(0..<position) : nil }
  /// How many bytes are to be read still, or can be written.
  private var left: Int { (frame?.count ?? 0) - position }

  package mutating func fail() { isValid = false }

  /// The frame and where the next field is in it; nil, and the whole is invalid, where it has no
  /// place, or nothing is there to be written.
  private mutating func next(_ count: Int, isGiven: Bool) -> (frame: Secret, place: Range<Int>)? {
    guard isValid, let frame, isGiven || !isWriting, (0...left).contains(count) else {
      fail()
      return nil
    }
    defer { position += count }
    return (frame, position..<position + count)
  }

  /// nil, and the whole is invalid, where it has no value.
  package mutating func valid<Value>(_ value: Value?) -> Value? {
    if value == nil { fail() }
    return value
  }

  // MARK: numbers

  /// Little-endian.
  package mutating func number(_ value: UInt64?, bytes count: Int = 8) -> UInt64 {
    guard let (frame, place) = next(count, isGiven: value != nil) else { return 0 }
    guard isWriting, let value else {
      return place.reversed().reduce(0) { $0 << 8 | UInt64(frame[$1]) }
    }
    for (index, byte) in place.enumerated() {
      frame.set(byte, to: UInt8(truncatingIfNeeded: value >> UInt64(8 * index)))
    }
    return value
  }

  /// Never 0.
  package mutating func id(_ value: UInt64?) -> UInt64 {
    let id = number(value)
    if id == 0 { fail() }
    return id
  }

  package mutating func number(_ value: UInt32?) -> UInt32 {
    UInt32(truncatingIfNeeded: number(value.map { UInt64($0) }, bytes: 4))
  }

  package mutating func number(_ value: Int32?) -> Int32 {
    Int32(bitPattern: number(value.map { UInt32(bitPattern: $0) }))
  }

  package mutating func byte(_ value: UInt8?) -> UInt8 {
    UInt8(truncatingIfNeeded: number(value.map { UInt64($0) }, bytes: 1))
  }

  /// A byte that is always this one.
  package mutating func constant(_ value: UInt8) {
    if byte(isWriting ? value : nil) != value { fail() }
  }

  /// 0 or 1.
  package mutating func bit(_ value: Bool?) -> Bool {
    let bit = byte(value.map { $0 ? 1 : 0 })
    if bit > 1 { fail() }
    return bit == 1
  }

  /// 1 to 7, as `Wire.robust` has it.
  package mutating func kind(_ value: Int?, of most: Int) -> Int {
    let byte = byte(value.map { Wire.robust($0) })
    return valid((1...most).first { Wire.robust($0) == byte }) ?? 0
  }

  /// As `kind` has 1 and 2: where a wrong one would let somebody pass.
  package mutating func flag(_ value: Bool?) -> Bool { kind(value.map { $0 ? 2 : 1 }, of: 2) == 2 }

  package mutating func time(_ value: UnixTime?) -> UnixTime {
    UnixTime(Int64(bitPattern: number(value.map { UInt64(bitPattern: $0.seconds) })))
  }

  // MARK: bytes and names

  package mutating func bytes(_ value: [UInt8]?, _ count: Int) -> [UInt8] {
    guard let (frame, place) = next(count, isGiven: value?.count == count) else { return [] }
    guard isWriting, let value else { return frame.bytes(in: place) }
    for (byte, index) in zip(value, place) { frame.set(index, to: byte) }
    return value
  }

  package mutating func secret(_ value: Secret?, _ count: Int) -> Secret? {
    guard let (frame, place) = next(count, isGiven: value?.count == count) else { return nil }
    guard isWriting, let value else { return valid(frame.slice(place)) }
    for index in 0..<count { frame.set(place.lowerBound + index, to: value[index]) }
    return value
  }

  /// All that is left.
  package mutating func rest(_ value: Secret?) -> Secret? { secret(value, value?.count ?? left) }

  /// Up to 255, after their count.
  package mutating func counted(_ value: [UInt8]?) -> [UInt8] {
    bytes(value, length(value?.count, bytes: 1))
  }

  /// Up to 65,535, after their count.
  package mutating func text(_ value: [UInt8]?) -> [UInt8] {
    bytes(value, length(value?.count, bytes: 2))
  }

  /// As `text`.
  package mutating func secret(_ value: Secret?) -> Secret? {
    secret(value, length(value?.count, bytes: 2))
  }

  /// How many bytes or values follow.
  package mutating func length(_ value: Int?, bytes count: Int) -> Int {
    let length = number(value.map { UInt64(truncatingIfNeeded: $0) }, bytes: count)
    if length >> UInt64(8 * count) != 0 { fail() }
    return Int(truncatingIfNeeded: length)
  }

  package mutating func name(_ value: UserName?) -> UserName? {
    valid(UserName(counted(value?.bytes)))
  }

  package mutating func label(_ value: Label?) -> Label? { valid(noneOrLabel(value)) }

  package mutating func noneOrLabel(_ value: Label?) -> Label? {
    let name = counted(isWriting ? value?.bytes ?? [] : nil)
    return name.isEmpty ? nil : valid(Label(name))
  }

  // MARK: several

  /// After a byte that says whether it is there.
  package mutating func optional<Value>(
    _ value: Value?, _ each: (inout Fields, Value?) -> Value?
  ) -> Value? {
    bit(isWriting ? value != nil : nil) ? valid(each(&self, value)) : nil
  }

  /// A number, then this many values.
  package mutating func list<Value>(
    _ values: [Value]?, _ counts: ClosedRange<Int>, bytes: Int = 1,
    _ each: (inout Fields, Value?) -> Value?
  ) -> [Value] {
    let count = length(values?.count, bytes: bytes)
    guard counts.contains(count) else {
      fail()
      return []
    }
    return several(values, count, each)
  }

  /// This many values.
  package mutating func several<Value>(
    _ values: [Value]?, _ count: Int, _ each: (inout Fields, Value?) -> Value?
  ) -> [Value] {
    var found: [Value] = []
    for index in 0..<count {
      guard let value = valid(each(&self, values?[index])) else { return [] }
      found.append(value)
    }
    return found
  }
}

/// What stands in a frame behind the version (1 byte).
package protocol FrameBody {
  /// Bytes of the longest frame.
  static var longest: Int { get }
  /// Writes `body`, or reads one where it is nil. Valid only if `fields` are whole afterwards.
  static func pass(_ body: Self?, _ fields: inout Fields) -> Self?
}

extension FrameBody {
  /// nil where a value has no place in a frame, or out of memory.
  package var frame: Secret? {
    var fields = Fields(writing: Self.longest)
    fields.constant(Wire.written)
    return Self.pass(self, &fields).flatMap { _ in fields.written }
  }

  /// Total: any bytes give a value that is written to the same bytes, or nil.
  package static func read(_ frame: Secret) -> Self? {
    guard frame.count <= longest, Wire.versions.contains(frame[0]) else { return nil }
    var fields = Fields(reading: frame, from: 1)
    guard let body = pass(nil, &fields), fields.isWhole, let again = body.frame else { return nil }
    again.set(0, to: frame[0])
    return constantTimeEquals(again, frame) ? body : nil
  }
}

/// A frame that may have secrets, so that its bytes are wiped.
package protocol SecretFrame: FrameBody {}

extension SecretFrame {
  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> Secret? { frame }

  /// Total: any bytes give a value that `encoded` gives, or nil.
  package static func decode(_ frame: Secret) -> Self? { read(frame) }
}
