import OneTimePassword

/// An element of an XML text. Names and attributes are without their prefixes: what is read here
/// has no two of different kinds that differ by their namespace alone.
final class XMLElement {
  let name: String
  let attributes: [String: String]
  /// In which it begins, counted from 1.
  let line: Int
  fileprivate(set) var children: [XMLElement] = []
  /// The parts of the source that are its own text; one of CDATA is as it is, without references.
  fileprivate(set) var parts: [(range: Range<Int>, isAsItIs: Bool)] = []

  fileprivate init(_ name: String, _ attributes: [String: String], line: Int) {
    (self.name, self.attributes, self.line) = (name, attributes, line)
  }

  /// The first child of this name.
  subscript(name: String) -> XMLElement? { children.first { $0.name == name } }

  /// What is there on the way of these names.
  func at(_ path: String...) -> XMLElement? {
    var element: XMLElement? = self
    for name in path { element = element?[name] }
    return element
  }
}

/// A text of XML 1.0 in UTF-8, read without what files of keys do not need, and what others have
/// been attacked by: no document type, so no entities but the five. Any bytes give an element or
/// the line of an error. It has secrets, of which nothing is copied.
struct XMLText {
  struct Error: Swift.Error, Equatable {
    let line: Int
    /// It has more elements, or one more attributes, than are read.
    var isTooMuch = false
  }

  let bytes: Secret
  private(set) var root: XMLElement

  private var place = 0
  private var line = 1
  private var open: [XMLElement] = []
  private var found: XMLElement?

  /// How deep elements may lie in one another.
  private static let mostOpen = 32
  /// Of the whole: each costs some hundred bytes of memory, and a key has some twenty.
  static let mostElements = 1 << 19
  /// Of one element.
  private static let mostAttributes = 64

  private var count = 0

  init(_ bytes: Secret) throws(Error) {
    self.bytes = bytes
    root = XMLElement("", [:], line: 1)
    place = bytes.count >= 3 && bytes.bytes(in: 0..<3) == [0xef, 0xbb, 0xbf] ? 3 : 0
    while place < bytes.count { try step() }
    guard let found, open.isEmpty else { throw Error(line: line) }
    root = found
  }

  /// The text of an element, with whitespace as it is; nil where it is longer than 4 KiB. Not for
  /// secrets.
  func string(_ element: XMLElement?) -> String? {
    guard let element else { return nil }
    guard element.parts.reduce(0, { $0 + $1.range.count }) <= 4096 else { return nil }
    let read = element.parts.flatMap { part in
      let raw = bytes.bytes(in: part.range)
      return part.isAsItIs ? raw : XMLText.unescaped(raw)
    }
    let text = String(decoding: read, as: UTF8.self)
    return String(
      text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
  }

  /// The same without whitespace, of a secret: it has no entities.
  func secret(_ element: XMLElement?) -> Secret? {
    guard let element else { return nil }
    var count = 0
    each(in: element) { _ in count += 1 }
    guard let text = Secret(count: count) else { return nil }
    var index = 0
    each(in: element) { byte in
      text.set(index, to: byte)
      index += 1
    }
    return text
  }

  private func each(in element: XMLElement, _ body: (UInt8) -> Void) {
    for part in element.parts {
      for index in part.range where !XMLText.isBlank(bytes[index]) { body(bytes[index]) }
    }
  }

  // MARK: reading

  private mutating func step() throws(Error) {
    guard bytes[place] == UInt8(ascii: "<") else { return try text() }
    if starts("<!--") {
      try skip(to: "-->", from: place + 4)
    } else if starts("<![CDATA[") {
      let start = place + 9
      try skip(to: "]]>", from: start)
      guard let last = open.last else { throw Error(line: line) }
      last.parts.append((start..<place - 3, true))
    } else if starts("<?") {
      try skip(to: "?>", from: place + 2)
    } else if starts("<!") {
      throw Error(line: line)
    } else if starts("</") {
      try close()
    } else {
      try begin()
    }
  }

  private mutating func text() throws(Error) {
    let end = bytes.first(UInt8(ascii: "<"), in: place..<bytes.count) ?? bytes.count
    if let last = open.last {
      last.parts.append((place..<end, false))
    } else {
      guard (place..<end).allSatisfy({ XMLText.isBlank(bytes[$0]) }) else {
        throw Error(line: line)
      }
    }
    advance(to: end)
  }

  private mutating func close() throws(Error) {
    let start = place + 2
    guard let end = bytes.first(UInt8(ascii: ">"), in: start..<bytes.count),
      let last = open.popLast()
    else { throw Error(line: line) }
    let name = bytes.bytes(in: start..<end).prefix { !XMLText.isBlank($0) }
    guard XMLText.local(Array(name)) == last.name else { throw Error(line: line) }
    if open.isEmpty { found = last }
    advance(to: end + 1)
  }

  private mutating func begin() throws(Error) {
    guard found == nil, open.count < XMLText.mostOpen else { throw Error(line: line) }
    count += 1
    guard count <= XMLText.mostElements else { throw Error(line: line, isTooMuch: true) }
    let first = line
    advance(to: place + 1)
    let name = try self.name()
    var attributes: [String: String] = [:]
    while true {
      skipBlanks()
      guard place < bytes.count else { throw Error(line: line) }
      if bytes[place] == UInt8(ascii: ">") || starts("/>") { break }
      let key = try self.name()
      skipBlanks()
      guard bytes[place] == UInt8(ascii: "=") else { throw Error(line: line) }
      advance(to: place + 1)
      skipBlanks()
      guard attributes.count < XMLText.mostAttributes else {
        throw Error(line: line, isTooMuch: true)
      }
      attributes[key] = try value()
    }
    let element = XMLElement(name, attributes, line: first)
    open.last?.children.append(element)
    if bytes[place] == UInt8(ascii: ">") {
      open.append(element)
      advance(to: place + 1)
    } else {
      if open.isEmpty { found = element }
      advance(to: place + 2)
    }
  }

  private mutating func name() throws(Error) -> String {
    let start = place
    while place < bytes.count, XMLText.isInName(bytes[place]) { place += 1 }
    guard (1...256).contains(place - start) else { throw Error(line: line) }
    return XMLText.local(bytes.bytes(in: start..<place))
  }

  private mutating func value() throws(Error) -> String {
    let quote = bytes[place]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
      let end = bytes.first(quote, in: place + 1..<bytes.count), end - place <= 4096
    else { throw Error(line: line) }
    let raw = bytes.bytes(in: place + 1..<end)
    advance(to: end + 1)
    return String(decoding: XMLText.unescaped(raw), as: UTF8.self)
  }

  private func starts(_ text: StaticString) -> Bool {
    bytes.holds(text, in: place..<place + text.utf8CodeUnitCount)
  }

  private mutating func skip(to end: StaticString, from start: Int) throws(Error) {
    var next = start
    while next + end.utf8CodeUnitCount <= bytes.count {
      if bytes.holds(end, in: next..<next + end.utf8CodeUnitCount) {
        return advance(to: next + end.utf8CodeUnitCount)
      }
      next += 1
    }
    throw Error(line: line)
  }

  private mutating func skipBlanks() {
    var next = place
    while next < bytes.count, XMLText.isBlank(bytes[next]) { next += 1 }
    advance(to: next)
  }

  private mutating func advance(to next: Int) {
    var start = place
    while let feed = bytes.first(UInt8(ascii: "\n"), in: start..<next) {
      line += 1
      start = feed + 1
    }
    place = next
  }

  static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d
  }

  private static func isInName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
      UInt8(ascii: "."), UInt8(ascii: ":"), 0x80...:
      true
    case _: false
    }
  }

  private static func local(_ name: [UInt8]) -> String {
    let last = name.split(separator: UInt8(ascii: ":")).last ?? []
    return String(decoding: last, as: UTF8.self)
  }

  /// A character by its number, `&#49;` or `&#x31;`, and its length here.
  private static func reference(_ text: ArraySlice<UInt8>) -> (Unicode.Scalar, count: Int)? {
    guard text.starts(with: "&#".utf8),
      let end = text.prefix(12).firstIndex(of: UInt8(ascii: ";"))
    else { return nil }
    let body = String(decoding: text[text.startIndex + 2..<end], as: UTF8.self)
    let number = body.first == "x" ? UInt32(body.dropFirst(), radix: 16) : UInt32(body)
    guard body.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }), let number, number > 0,
      let scalar = Unicode.Scalar(number)
    else { return nil }
    return (scalar, end + 1 - text.startIndex)
  }

  private static func unescaped(_ raw: [UInt8]) -> [UInt8] {
    guard raw.contains(UInt8(ascii: "&")) else { return raw }
    let entities: [(String, UInt8)] = [
      ("&lt;", 0x3c), ("&gt;", 0x3e), ("&amp;", 0x26), ("&quot;", 0x22), ("&apos;", 0x27),
    ]
    var (text, rest) = ([UInt8](), raw[...])
    while let byte = rest.first {
      if let (name, value) = entities.first(where: { rest.starts(with: $0.0.utf8) }) {
        text.append(value)
        rest = rest.dropFirst(name.utf8.count)
      } else if let (scalar, count) = reference(rest) {
        text += Array(String(scalar).utf8)
        rest = rest.dropFirst(count)
      } else {
        text.append(byte)
        rest = rest.dropFirst()
      }
    }
    return text
  }
}
