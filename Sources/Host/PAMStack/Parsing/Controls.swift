/// What libpam does with a module's return value: the word right of `=` in pam.d(5).
package enum PAMAction: Hashable, Sendable {
  case ignore, ok, done, bad, die, reset
  /// Skips this many of the following modules on the same level, at least 1.
  case jump(Int32)
  /// A number that libpam takes for none of the actions: the stack fails.
  case invalid

  /// In the order of libpam, which stores them as 0, -1, -2, ….
  fileprivate static let words: [(word: String, action: PAMAction)] = [
    ("ignore", .ignore), ("ok", .ok), ("done", .done), ("bad", .bad), ("die", .die),
    ("reset", .reset),
  ]
}

/// The control field of a line: an action for each of the 32 return values.
package struct PAMControls: Hashable, Sendable {
  private var actions: [PAMAction]

  package subscript(code: PAMCode) -> PAMAction { actions[Int(code.number)] }

  /// Every return value is a failure.
  static let allBad = PAMControls(default: .bad)

  private init(default action: PAMAction, _ others: [(PAMCode, PAMAction)] = []) {
    actions = Array(repeating: action, count: PAMCode.all.count)
    for (code, action) in others { actions[Int(code.number)] = action }
  }

  /// Parses a keyword or the inside of `[value=action …]`. As in libpam, anything else makes every
  /// return value a failure; then `isBroken` is set.
  init(word: [UInt8], _ rules: LibpamRules, isBroken: inout Bool) {
    if equal(word, "required") {
      self.init(default: .bad, PAMControls.usual(.ok) + [(.ignore, .ignore)])
    } else if equal(word, "requisite") {
      self.init(default: .die, PAMControls.usual(.ok) + [(.ignore, .ignore)])
    } else if equal(word, "optional") {
      self.init(default: .ignore, PAMControls.usual(.ok))
    } else if equal(word, "sufficient") {
      self.init(default: .ignore, PAMControls.usual(.done))
    } else if let controls = PAMControls(pairs: word, rules) {
      self = controls
    } else {
      self = .allBad
      isBroken = true
    }
  }

  private static func usual(_ action: PAMAction) -> [(PAMCode, PAMAction)] {
    [(.success, action), (.newPasswordRequired, action)]
  }

  /// Parses `value=action` pairs, with or without spaces around and between them. Returns nil where
  /// libpam reports an error.
  private init?(pairs: [UInt8], _ rules: LibpamRules) {
    var set = [PAMAction?](repeating: nil, count: PAMCode.all.count)
    var text = ControlText(pairs)
    while text.skipSpaces() {
      guard let value = text.value(), text.equalsSign(), let action = text.action(rules) else {
        return nil
      }
      switch value {
      case .one(let index): set[index] = action
      case .others:
        for index in set.indices where set[index] == nil { set[index] = action }
      }
    }
    actions = set.map { $0 ?? .bad }
  }
}

/// The text of `value=action` pairs, read from left to right.
private struct ControlText {
  enum Value {
    case one(Int)
    /// `default`: the return values that have no action yet.
    case others
  }

  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns false at the end of the text.
  mutating func skipSpaces() -> Bool {
    while place < bytes.count, isSpace(bytes[place]) { place += 1 }
    return place < bytes.count
  }

  /// libpam needs no space after the word: it reads `okdefault=bad` as two pairs.
  private mutating func takes(_ word: String) -> Bool {
    guard bytes[place...].starts(with: word.utf8) else { return false }
    place += word.utf8.count
    return true
  }

  mutating func value() -> Value? {
    for (index, name) in PAMCode.names.enumerated() where takes(name) { return .one(index) }
    return takes("default") ? .others : nil
  }

  mutating func equalsSign() -> Bool {
    guard skipSpaces(), bytes[place] == UInt8(ascii: "=") else { return false }
    place += 1
    return skipSpaces()
  }

  mutating func action(_ rules: LibpamRules) -> PAMAction? {
    for (word, action) in PAMAction.words where takes(word) { return action }
    return jump(rules)
  }

  /// libpam adds the digits up in an `int`. Before 1.6 it does not look for overflow: a long number
  /// may come out as one of the words.
  private mutating func jump(_ rules: LibpamRules) -> PAMAction? {
    var number: Int32 = 0
    let start = place
    while place < bytes.count, (0x30...0x39).contains(bytes[place]) {
      let digit = Int32(bytes[place] - 0x30)
      if rules == .since16, number > (Int32.max - digit) / 10 { return nil }
      number = number &* 10 &+ digit
      place += 1
    }
    if place == start || number == 0 { return nil }
    if number > 0 { return .jump(number) }
    let index = Int(number.magnitude)
    return index < PAMAction.words.count ? PAMAction.words[index].action : .invalid
  }

  private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
}
