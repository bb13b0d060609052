import OneTimePassword

/// A message in protocol buffers, as an object: the fields of a table, others are skipped.
struct ProtobufReader {
  private let bytes: Secret
  private var position: Int
  private let end: Int

  /// The fields that mean something, by their numbers.
  struct Message: Sendable {
    indirect enum Kind: Sendable {
      case number
      case bytes
      case messages(Message)
    }
    let fields: [(number: UInt64, name: String, kind: Kind)]
  }

  static func read(_ bytes: Secret, as message: Message) throws(SourceProblem) -> ExportNode {
    var reader = ProtobufReader(bytes, 0..<bytes.count)
    return try reader.object(message)
  }

  private init(_ bytes: Secret, _ range: Range<Int>) {
    (self.bytes, position, end) = (bytes, range.lowerBound, range.upperBound)
  }

  private mutating func object(_ message: Message) throws(SourceProblem) -> ExportNode {
    var members: [ExportNode.Member] = []
    var lists: [String: [ExportNode]] = [:]
    while position < end {
      let tag = try varint()
      let field = message.fields.first { $0.number == tag >> 3 }
      // The wire types: a varint, eight bytes, four, or a length and as many.
      switch tag & 7 {
      case 0:
        let number = Int64(bitPattern: try varint())
        if let field, case .number = field.kind {
          members.append(.init(field.name, .number(number)))
        }
      case 1: try skip(8)
      case 5: try skip(4)
      case 2:
        let range = try part()
        if let field { try add(field.name, field.kind, range, to: &members, lists: &lists) }
      case _: throw .protobuf
      }
    }
    // The last of several counts, as the format says.
    members.reverse()
    return .object(members + lists.map { .init($0.key, .list($0.value)) })
  }

  /// A field with a length.
  private func add(
    _ name: String, _ kind: Message.Kind, _ range: Range<Int>,
    to members: inout [ExportNode.Member], lists: inout [String: [ExportNode]]
  ) throws(SourceProblem) {
    switch kind {
    case .bytes:
      guard let text = bytes.slice(range) else { throw .outOfMemory }
      members.append(.init(name, .text(text)))
    case .messages(let message):
      var inner = ProtobufReader(bytes, range)
      lists[name, default: []].append(try inner.object(message))
    case .number: throw .protobuf
    }
  }

  private mutating func varint() throws(SourceProblem) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard position < end else { throw .protobuf }
      let byte = bytes[position]
      position += 1
      value |= UInt64(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return value }
    }
    throw .protobuf
  }

  private mutating func part() throws(SourceProblem) -> Range<Int> {
    guard let length = Int(exactly: try varint()), length <= end - position else {
      throw .protobuf
    }
    let range = position..<position + length
    position += length
    return range
  }

  private mutating func skip(_ count: Int) throws(SourceProblem) {
    guard count <= end - position else { throw .protobuf }
    position += count
  }
}
