import OneTimePassword

/// JSON (RFC 8259), of which nothing is copied that is not wiped. Any bytes give a result.
struct JSONReader {
  private let text: SourceText
  private(set) var position: Int

  /// Objects and lists in each other.
  private static let deepest = 32
  /// In one file: an entry has some thirty. Each takes many times its bytes in memory.
  private static let most = 1_000_000
  private var nodes = 0

  private init(_ text: SourceText) { (self.text, position) = (text, text.start) }

  static func read(_ text: SourceText) throws(LineProblem) -> ExportNode {
    var reader = JSONReader(text)
    do throws(SourceProblem) {
      let node = try reader.value(0)
      reader.skipBlanks()
      guard reader.position == text.bytes.count else { throw .json }
      return node
    } catch {
      throw LineProblem(text.lineNumber(at: reader.position), error)
    }
  }

  private mutating func value(_ depth: Int) throws(SourceProblem) -> ExportNode {
    nodes += 1
    guard depth < JSONReader.deepest, nodes <= JSONReader.most else { throw .json }
    skipBlanks()
    switch text.bytes[position] {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try list(depth)
    case UInt8(ascii: "\""): return .text(try string())
    case UInt8(ascii: "t"): return try word("true", .flag(true))
    case UInt8(ascii: "f"): return try word("false", .flag(false))
    case UInt8(ascii: "n"): return try word("null", .other)
    case let byte where byte == UInt8(ascii: "-") || isDigit(byte): return number()
    case _: throw .json
    }
  }

  private mutating func object(_ depth: Int) throws(SourceProblem) -> ExportNode {
    var members: [ExportNode.Member] = []
    position += 1
    if taken("}") { return .object([]) }
    repeat {
      skipBlanks()
      guard text.bytes[position] == UInt8(ascii: "\"") else { throw .json }
      let name = try string()
      guard taken(":") else { throw .json }
      members.append(.init(name.bytes(in: 0..<min(name.count, 64)), try value(depth + 1)))
    } while taken(",")
    guard taken("}") else { throw .json }
    return .object(members)
  }

  private mutating func list(_ depth: Int) throws(SourceProblem) -> ExportNode {
    var nodes: [ExportNode] = []
    position += 1
    if taken("]") { return .list([]) }
    repeat { nodes.append(try value(depth + 1)) } while taken(",")
    guard taken("]") else { throw .json }
    return .list(nodes)
  }

  private mutating func string() throws(SourceProblem) -> Secret {
    position += 1
    // What an escape stands for is no longer than the escape.
    guard let end = end(ofString: position) else { throw .json }
    var builder = try SecretBuilder(most: end - position)
    while position < end {
      let byte = text.bytes[position]
      position += 1
      if byte == UInt8(ascii: "\\") { try escape(&builder) } else { builder.add(byte) }
    }
    position = end + 1
    return try builder.secret()
  }

  /// Of its second quote; nil without one, and with a control character before it.
  private func end(ofString start: Int) -> Int? {
    var index = start
    while index < text.bytes.count {
      let byte = text.bytes[index]
      if byte < 0x20 { return nil }
      if byte == UInt8(ascii: "\"") { return index }
      index += byte == UInt8(ascii: "\\") ? 2 : 1
    }
    return nil
  }

  private mutating func escape(_ builder: inout SecretBuilder) throws(SourceProblem) {
    let byte = text.bytes[position]
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): builder.add(byte)
    case UInt8(ascii: "b"): builder.add(0x08)
    case UInt8(ascii: "f"): builder.add(0x0c)
    case UInt8(ascii: "n"): builder.add(0x0a)
    case UInt8(ascii: "r"): builder.add(0x0d)
    case UInt8(ascii: "t"): builder.add(0x09)
    case UInt8(ascii: "u"): builder.add(scalar: try scalar())
    case _: throw .json
    }
  }

  /// After `\u`; a pair of surrogates is one.
  private mutating func scalar() throws(SourceProblem) -> UInt32 {
    let first = try unit()
    guard first & 0xfc00 == 0xd800, text.bytes[position] == UInt8(ascii: "\\"),
      text.bytes[position + 1] == UInt8(ascii: "u")
    else { return first }
    let before = position
    position += 2
    let second = try unit()
    if second & 0xfc00 == 0xdc00 { return 0x10000 + (first & 0x3ff) << 10 + (second & 0x3ff) }
    position = before
    return first
  }

  private mutating func unit() throws(SourceProblem) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = hexadecimalValue(text.bytes[position]) else { throw .json }
      unit = unit << 4 | UInt32(digit)
      position += 1
    }
    return unit
  }

  private mutating func number() -> ExportNode {
    let start = position
    while position < text.bytes.count, isOfNumber(text.bytes[position]) { position += 1 }
    guard position - start <= 20 else { return .other }
    let digits = String(decoding: text.bytes.bytes(in: start..<position), as: UTF8.self)
    return Int64(digits).map { .number($0) } ?? .other
  }

  private func isOfNumber(_ byte: UInt8) -> Bool {
    isDigit(byte) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains(byte)
  }

  private mutating func word(_ word: String, _ node: ExportNode) throws(SourceProblem)
    -> ExportNode
  {
    for byte in word.utf8 {
      guard text.bytes[position] == byte else { throw .json }
      position += 1
    }
    return node
  }

  private mutating func taken(_ character: Unicode.Scalar) -> Bool {
    skipBlanks()
    guard text.bytes[position] == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func skipBlanks() {
    while position < text.bytes.count,
      text.isBlank(text.bytes[position]) || text.bytes[position] == UInt8(ascii: "\n")
    {
      position += 1
    }
  }
}

/// The value of a hexadecimal digit.
func hexadecimalValue(_ byte: UInt8) -> UInt8? {
  let letter = lowercased(byte)
  if isDigit(byte) { return byte - UInt8(ascii: "0") }
  guard letter >= UInt8(ascii: "a"), letter <= UInt8(ascii: "f") else { return nil }
  return letter - UInt8(ascii: "a") + 10
}
