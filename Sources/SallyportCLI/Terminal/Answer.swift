import FoundationEssentials

/// A value that is in the object as null where there is none; an Optional alone is left out then.
@propertyWrapper
struct OrNull<Value: Encodable>: Encodable {
  var wrappedValue: Value?

  init(wrappedValue value: Value?) { wrappedValue = value }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

extension OrNull: Equatable where Value: Equatable {}

/// The members of both in one object.
struct Joined<First: Encodable, Second: Encodable>: Encodable {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  func encode(to encoder: any Encoder) throws {
    try first.encode(to: encoder)
    try second.encode(to: encoder)
  }
}

/// As it is printed for programs (RFC 8259), without a last newline.
func written(_ answer: some Encodable) -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
  // It throws for numbers that JSON has not, and there are whole ones only.
  let text = (try? encoder.encode(answer)).map { Array($0) } ?? Array("null".utf8)
  // DEL, which a terminal may obey, is only within texts.
  return text.flatMap { $0 == 0x7f ? Array("\\u007f".utf8) : [$0] }
}
