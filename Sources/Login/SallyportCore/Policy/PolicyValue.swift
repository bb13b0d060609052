import OneTimePassword

// The values of a policy file as numbers.

extension PolicyFile {
  /// Returns nil if the value is not valid for the key.
  @inline(never) func number(_ key: PolicyKey, _ value: Range<Int>) -> UInt64? {
    switch key {
    case .state, .enrollment, .factorTOTP, .factorHOTP, .factorBackupCode, .hints,
      .tell, .selfService, .verification, .away, .factorPass:
      return choice(key, value)
    case .adjacentIntervals, .lookAhead, .tries, .remindEvery, .minimumFactors:
      return whole(key, value)
    case .guessBudget: return percentage(value)
    case .remember, .reserveFor: return duration(value)
    case .requiredFrom:
      return UnixTime(date: text.bytes(in: value)).map { UInt64(max($0.seconds, 0)) }
    case .factorOrder: return order(value)
    case .language:
      return Policy.language(text.bytes(in: value)) ?? UInt64(UInt8(ascii: "?"))
    case .localServices, .sshdServices, .matchService, .matchUser, .matchGroup, .matchOrigin:
      return names(key, value)
    }
  }

  /// Returns 0 if there are words and all are valid for the key, otherwise nil.
  private func names(_ key: PolicyKey, _ value: Range<Int>) -> UInt64? {
    var words = Words(text, value)
    var found: UInt64?
    while let word = words.next() {
      found = 0
      if word.isEmpty
        || key == .matchOrigin && !same("local", word) && !same("network", word)
          && AddressRange(word, login.parse) == nil
      {
        return nil
      }
    }
    return found
  }

  private func choice(_ key: PolicyKey, _ value: Range<Int>) -> UInt64? {
    var number: UInt64 = 0
    while let word = key.word(number) {
      if text.holds(word, in: value) { return number }
      number += 1
    }
    return nil
  }

  private func whole(_ key: PolicyKey, _ value: Range<Int>) -> UInt64? {
    decimal(text.bytes(in: value)).flatMap { key.bounds.contains($0) ? $0 : nil }
  }

  /// All three kinds, in any order.
  private func order(_ value: Range<Int>) -> UInt64? {
    var words = Words(text, value)
    var (number, count): (UInt8, Int) = (0, 0)
    while let word = words.next() {
      var digit: UInt8?
      for kind in FactorKind.allCases where same(kind.name, word) { digit = kind.rawValue }
      guard let digit, count < 3 else { return nil }
      (number, count) = (number * 3 + digit, count + 1)
    }
    return count < 3 ? nil : FactorOrder(number: number).map { UInt64($0.number) }
  }

  /// Parses 0, or digits, an optional space and a unit; in seconds, at most a year.
  private func duration(_ value: Range<Int>) -> UInt64? {
    var digits = text.bytes(in: value)
    if same("0", digits) { return 0 }
    guard digits.count < 12, let unit = digits.popLast().flatMap(seconds) else { return nil }
    if digits.last == 0x20 { digits.removeLast() }
    // Cannot overflow, with at most eleven digits.
    guard let number = decimal(digits), PolicyKey.remember.bounds.contains(number * unit) else {
      return nil
    }
    return number * unit
  }

  private func seconds(ofUnit letter: UInt8) -> UInt64? {
    switch letter {
    case UInt8(ascii: "s"): 1
    case UInt8(ascii: "m"): 60
    case UInt8(ascii: "h"): 3600
    case UInt8(ascii: "d"): 86_400
    case _: nil
    }
  }

  /// Parses digits, optionally a point with one or two more, an optional space, and `%`; in units
  /// of `GuessProbability`.
  private func percentage(_ value: Range<Int>) -> UInt64? {
    var digits = text.bytes(in: value)
    guard digits.count < 9, digits.popLast() == UInt8(ascii: "%") else { return nil }
    if digits.last == 0x20 { digits.removeLast() }
    var unit = GuessProbability.percent.units
    if let point = digits.firstIndex(of: UInt8(ascii: ".")), point > 0 {
      let places = digits.count - 1 - point
      guard places == 1 || places == 2 else { return nil }
      digits.remove(at: point)
      unit /= places == 1 ? 10 : 100
    }
    // Cannot overflow, with at most seven digits.
    guard let number = decimal(digits) else { return nil }
    return PolicyKey.guessBudget.bounds.contains(number * unit) ? number * unit : nil
  }
}

extension Policy {
  /// Reads `fr`, `pt-BR` or `pt_BR`: the bytes as a number, the first one the highest; 0 for `en`,
  /// in whatever region.
  /// Nothing that means something in a path, as it names a file; nil for anything else, which in a
  /// policy file is `?`, of which there is no catalog: it decides nothing, so it is no mistake that
  /// the strict policy is needed for.
  package static func language(_ name: [UInt8]) -> UInt64? {
    var number: UInt64 = 0
    guard name.count == 2 || name.count == 3 || name.count == 5 else { return nil }
    for index in name.indices {
      let byte = name[index] == UInt8(ascii: "_") ? UInt8(ascii: "-") : name[index]
      let isRight =
        switch name.count == 5 ? index : 0 {
        case 0, 1: byte >= 0x61 && byte <= 0x7a
        case 2: byte == UInt8(ascii: "-")
        case _: byte >= 0x41 && byte <= 0x5a
        }
      guard isRight else { return nil }
      number = number << 8 | UInt64(byte)
    }
    return withoutRegion(number) == 0x656e ? 0 : number
  }

  /// `pt` for `pt-BR`.
  package static func withoutRegion(_ language: UInt64) -> UInt64 {
    language > 0xff_ffff ? language >> 24 : language
  }

  /// `fr` or `pt-BR`, as a catalog is named.
  package static func name(ofLanguage number: UInt64) -> [UInt8] {
    var name: [UInt8] = []
    for place in 0..<8 {
      let byte = UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64(place)))
      if byte != 0 { name.append(byte) }
    }
    return name
  }
}
