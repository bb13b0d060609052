package import OneTimePassword

/// What an app's export says: JSON, CSV, XML and protocol buffers come to one tree, so that a table
/// of paths reads them all. Texts may be secrets, and so are wiped.
package indirect enum ExportNode: Sendable {
  case object([Member])
  case list([ExportNode])
  case text(Secret)
  /// A whole number.
  case number(Int64)
  case flag(Bool)
  /// Null, and numbers that are not whole.
  case other

  /// The names are those of the format, no secrets.
  package struct Member: Sendable {
    let name: [UInt8]
    let value: ExportNode

    init(_ name: String, _ value: ExportNode) { self.init(Array(name.utf8), value) }

    init(_ name: [UInt8], _ value: ExportNode) { (self.name, self.value) = (name, value) }
  }

  /// The value of the first member of that name, and so on along the path; the node itself at an
  /// empty one.
  package subscript(_ path: [String]) -> ExportNode? {
    var node = self
    for name in path {
      guard case .object(let members) = node,
        let next = members.first(where: { $0.name.elementsEqual(name.utf8) })
      else { return nil }
      node = next.value
    }
    return node
  }

  package var list: [ExportNode]? { if case .list(let list) = self { list } else { nil } }

  package var text: Secret? { if case .text(let text) = self { text } else { nil } }
}

/// What is built of bytes one after the other: room for `most`, wiped at the end.
struct SecretBuilder {
  private let room: Secret
  private(set) var count = 0

  init(most: Int) throws(SourceProblem) {
    guard let room = Secret(count: most) else { throw .outOfMemory }
    self.room = room
  }

  mutating func add(_ byte: UInt8) {
    room.set(count, to: byte)
    count += 1
  }

  /// In UTF-8; U+FFFD for what is no scalar.
  mutating func add(scalar: UInt32) {
    for byte in UTF8.encode(Unicode.Scalar(scalar) ?? "\u{fffd}")
      ?? UTF8.encodedReplacementCharacter
    {
      add(byte)
    }
  }

  func secret() throws(SourceProblem) -> Secret {
    guard let secret = room.slice(0..<min(count, room.count)) else { throw .outOfMemory }
    return secret
  }
}
