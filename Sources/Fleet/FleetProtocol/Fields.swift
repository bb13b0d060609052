package import OneTimePassword
import SallyportCore

/// The fields of a frame, one after the other, as they are written or read: one description serves
/// both. Each function is given the value to write, or nil to read one, and gives the value. What
/// has no place in a frame, or is invalid, makes the whole invalid (`isWhole`).
package struct Fields {
  private var writer: ByteWriter
  private var reader: ByteReader
  private let isWriting: Bool

  /// At most this many bytes.
  init(writing longest: Int) {
    (writer, reader, isWriting) = (ByteWriter(count: longest), ByteReader([], 0..<0), true)
  }

  /// From the byte at `start` on.
  init(reading bytes: [UInt8], from start: Int = 0) {
    reader = ByteReader(bytes, min(start, bytes.count)..<bytes.count)
    (writer, isWriting) = (ByteWriter(count: 0), false)
  }

  var isWhole: Bool { isWriting ? writer.isWhole : reader.isWhole && reader.isAtEnd }
  /// What was written.
  var bytes: [UInt8] { [UInt8](writer.bytes.prefix(writer.position)) }

  mutating func fail() {
    writer.fail()
    reader.fail()
  }

  private mutating func pass<Value>(
    _ value: Value?, else invalid: Value, put: (Value, inout ByteWriter) -> Void,
    take: (inout ByteReader) -> Value
  ) -> Value {
    guard isWriting else { return take(&reader) }
    guard let value else {
      fail()
      return invalid
    }
    put(value, &writer)
    return value
  }

  /// nil, and the whole is invalid, where it has no value.
  private mutating func valid<Value>(_ value: Value?) -> Value? {
    if value == nil { fail() }
    return value
  }

  // MARK: numbers

  /// Little-endian.
  mutating func number(_ value: UInt64?, bytes count: Int = 8) -> UInt64 {
    pass(value, else: 0, put: { $1.put($0, bytes: count) }, take: { $0.number(bytes: count) })
  }

  /// Never 0.
  mutating func id(_ value: UInt64?) -> UInt64 {
    let id = number(value)
    if id == 0 { fail() }
    return id
  }

  mutating func number(_ value: UInt32?) -> UInt32 {
    UInt32(truncatingIfNeeded: number(value.map { UInt64($0) }, bytes: 4))
  }

  mutating func number(_ value: Int32?) -> Int32 {
    Int32(bitPattern: number(value.map { UInt32(bitPattern: $0) }))
  }

  mutating func byte(_ value: UInt8?) -> UInt8 {
    UInt8(truncatingIfNeeded: number(value.map { UInt64($0) }, bytes: 1))
  }

  /// 1 to 7, as `Wire.robust` has it.
  mutating func kind(_ value: Int?, of most: Int) -> Int {
    pass(value, else: 0, put: { $1.put(robust: $0) }, take: { $0.robust(atMost: most) })
  }

  /// As `kind` has 1 and 2: where a wrong one would let somebody pass.
  mutating func flag(_ value: Bool?) -> Bool { kind(value.map { $0 ? 2 : 1 }, of: 2) == 2 }

  mutating func time(_ value: UnixTime?) -> UnixTime {
    pass(value, else: UnixTime(0), put: { $1.put($0) }, take: { $0.time() })
  }

  // MARK: bytes and names

  mutating func bytes(_ value: [UInt8]?, _ count: Int) -> [UInt8] {
    let bytes = pass(value, else: [], put: { $1.put($0) }, take: { $0.take(count) })
    if bytes.count != count { fail() }
    return bytes
  }

  /// Up to 255, after their count.
  mutating func counted(_ value: [UInt8]?) -> [UInt8] {
    pass(value, else: [], put: { $1.put(counted: $0) }, take: { $0.counted() })
  }

  /// Up to 65,535, after their count.
  mutating func text(_ value: [UInt8]?) -> [UInt8] {
    let count = number(value.map { UInt64($0.count) }, bytes: 2)
    if count > 0xffff { fail() }
    return bytes(value, Int(count))
  }

  mutating func address(_ value: [UInt8]?) -> [UInt8] {
    let address = counted(value)
    if !isAddressText(address) { fail() }
    return address
  }

  mutating func name(_ value: UserName?) -> UserName? { valid(UserName(counted(value?.bytes))) }
  mutating func host(_ value: FleetHostName?) -> FleetHostName? {
    valid(FleetHostName(counted(value?.bytes)))
  }

  mutating func label(_ value: Label?) -> Label? { valid(noneOrLabel(value)) }

  mutating func noneOrLabel(_ value: Label?) -> Label? {
    pass(.some(value), else: nil, put: { $1.put($0) }, take: { $0.label() })
  }

  mutating func policy(_ value: Policy?) -> Policy {
    pass(value, else: Policy(), put: { $1.put($0) }, take: { $0.policy() })
  }

  // MARK: several

  /// After a byte that says whether it is there.
  mutating func optional<Value>(
    _ value: Value?, _ each: (inout Fields, Value?) -> Value?
  ) -> Value? {
    let isThere = pass(
      value != nil, else: false, put: { $1.put(isThere: $0) }, take: { $0.isThere() })
    return isThere ? valid(each(&self, value)) : nil
  }

  /// A number, then this many values.
  mutating func list<Value>(
    _ values: [Value]?, _ counts: ClosedRange<Int>, bytes: Int = 1,
    _ each: (inout Fields, Value?) -> Value?
  ) -> [Value] {
    let count = number(values.map { UInt64($0.count) }, bytes: bytes)
    guard count <= UInt64(counts.upperBound), counts.contains(Int(count)) else {
      fail()
      return []
    }
    var found: [Value] = []
    for index in 0..<Int(count) {
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
  /// nil where a value has no place in a frame.
  fileprivate var bytes: [UInt8]? {
    var fields = Fields(writing: Self.longest)
    _ = fields.byte(Wire.written)
    guard Self.pass(self, &fields) != nil else { return nil }
    return fields.isWhole ? fields.bytes : nil
  }

  /// Total: any bytes give a value that is written to the same bytes, or nil.
  fileprivate static func read(_ frame: [UInt8]) -> Self? {
    guard let version = frame.first, Wire.versions.contains(version) else { return nil }
    var fields = Fields(reading: frame, from: 1)
    guard let body = pass(nil, &fields), fields.isWhole, let again = body.bytes,
      again.dropFirst() == frame.dropFirst()
    else { return nil }
    return body
  }
}

/// What a host asks.
package protocol FrameQuestion: FrameBody {}

extension FrameQuestion {
  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> Secret? { bytes.flatMap { Secret($0) } }

  /// Total: any bytes give a question that `encoded` gives, or nil.
  package static func decode(_ frame: Secret) -> Self? {
    frame.count > longest ? nil : read(frame.bytes(in: 0..<frame.count))
  }
}

/// What a verifier answers.
package protocol FrameAnswer: FrameBody {}

extension FrameAnswer {
  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? { bytes }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> Self? { read(frame) }
}
