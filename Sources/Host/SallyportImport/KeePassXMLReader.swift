import OneTimePassword

/// The XML of KeePass: a list of its entries, each an object of its strings. What an entry was
/// before (`History`) is left out. No XML for everything: a document type and CDATA are refused.
struct KeePassXMLReader {
  private let text: SourceText
  private var position: Int
  /// The elements that are open.
  private var open: [[UInt8]] = []
  private var entries: [ExportNode] = []
  private var entry: [ExportNode.Member] = []
  private var key: [UInt8] = []

  private static let deepest = 64

  static func read(_ text: SourceText) throws(LineProblem) -> ExportNode {
    var reader = KeePassXMLReader(text: text, position: text.start)
    do throws(SourceProblem) {
      try reader.document()
      return .object([.init("KeePassFile", .list(reader.entries))])
    } catch {
      throw LineProblem(text.lineNumber(at: reader.position), error)
    }
  }

  private init(text: SourceText, position: Int) { (self.text, self.position) = (text, position) }

  private mutating func document() throws(SourceProblem) {
    var start = position
    var isKeePass = false
    while let tag = text.offset(of: UInt8(ascii: "<"), in: position..<text.bytes.count) {
      let content = start..<tag
      guard let end = text.offset(of: UInt8(ascii: ">"), in: tag..<text.bytes.count) else {
        throw .xml
      }
      position = end + 1
      switch text.bytes[tag + 1] {
      case UInt8(ascii: "?"): break
      case UInt8(ascii: "!"): try skipComment(tag)
      case UInt8(ascii: "/"): try close(tag + 2..<end, content)
      case _: try begin(tag + 1..<end)
      }
      isKeePass = isKeePass || open.first?.elementsEqual("KeePassFile".utf8) == true
      start = position
    }
    guard isKeePass, open.isEmpty else { throw .xml }
  }

  private mutating func skipComment(_ tag: Int) throws(SourceProblem) {
    guard text.bytes.holds("<!--", in: tag..<tag + 4) else { throw .xml }
    var end = tag + 4
    while !text.bytes.holds("-->", in: end..<end + 3) {
      guard end < text.bytes.count else { throw .xml }
      end += 1
    }
    position = end + 3
  }

  private mutating func begin(_ tag: Range<Int>) throws(SourceProblem) {
    let isEmpty = text.bytes[tag.upperBound - 1] == UInt8(ascii: "/")
    let inside = tag.lowerBound..<max(tag.lowerBound, tag.upperBound - (isEmpty ? 1 : 0))
    let words = text.words(in: inside)
    guard let name = words.first, name.count <= 64, open.count < KeePassXMLReader.deepest else {
      throw .xml
    }
    open.append(text.bytes.bytes(in: name))
    if isIn("Entry"), !isOld { entry = [] }
    if isIn("Entry", "String") { key = [] }
    if isEmpty { try closed(tag.upperBound..<tag.upperBound) }
  }

  private mutating func close(_ tag: Range<Int>, _ content: Range<Int>) throws(SourceProblem) {
    guard let name = text.words(in: tag).first, let last = open.last,
      last.elementsEqual(text.bytes.bytes(in: name.prefix(65)))
    else { throw .xml }
    try closed(content)
  }

  /// The end of the innermost element, which has this text behind its last child.
  private mutating func closed(_ content: Range<Int>) throws(SourceProblem) {
    if !isOld {
      if isIn("Entry") { entries.append(.object(entry)) }
      if isIn("Entry", "String", "Key") {
        let name = try unescaped(content)
        key = name.bytes(in: 0..<min(name.count, 64))
      }
      if isIn("Entry", "String", "Value") {
        entry.append(.init(key, .text(try unescaped(content))))
      }
    }
    open.removeLast()
  }

  /// Whether this is what an entry was before.
  private var isOld: Bool { open.contains { $0.elementsEqual("History".utf8) } }

  /// Whether these are the innermost elements.
  private func isIn(_ names: String...) -> Bool {
    open.count >= names.count
      && zip(open.suffix(names.count), names).allSatisfy { $0.elementsEqual($1.utf8) }
  }

  private func unescaped(_ range: Range<Int>) throws(SourceProblem) -> Secret {
    var builder = try SecretBuilder(most: range.count)
    var index = range.lowerBound
    while index < range.upperBound {
      let byte = text.bytes[index]
      index += 1
      guard byte == UInt8(ascii: "&") else {
        builder.add(byte)
        continue
      }
      guard let end = text.offset(of: UInt8(ascii: ";"), in: index..<range.upperBound) else {
        throw .xml
      }
      builder.add(scalar: try scalar(index..<end))
      index = end + 1
    }
    return try builder.secret()
  }

  /// The character that a reference stands for, between `&` and `;`: never longer in UTF-8 than as
  /// a reference.
  private func scalar(_ range: Range<Int>) throws(SourceProblem) -> UInt32 {
    let name = text.bytes.bytes(in: range.prefix(10))
    switch String(decoding: name, as: UTF8.self) {
    case "lt": return 0x3c
    case "gt": return 0x3e
    case "amp": return 0x26
    case "quot": return 0x22
    case "apos": return 0x27
    case _: break
    }
    guard name.first == UInt8(ascii: "#"), name.count == range.count else { throw .xml }
    let isHexadecimal = name.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
    let digits = String(decoding: name.dropFirst(isHexadecimal ? 2 : 1), as: UTF8.self)
    guard let number = UInt32(digits, radix: isHexadecimal ? 16 : 10) else { throw .xml }
    return number
  }
}
