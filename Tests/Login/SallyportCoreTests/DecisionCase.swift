import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// One case of Tests/Vectors/decisions.txt; the head of that file says what its lines mean.
struct DecisionCase: CustomTestStringConvertible, Sendable {
  enum ParseError: Error { case line(String) }

  let testDescription: String
  var authenticators: [Authenticator] = []
  /// The OFFSET and SINCE of the tokens.
  var clocks: [UInt64: TokenClock] = [:]
  var backupCodes: [String] = []
  var scratchCodes: [String] = []
  var usedBackupCodes: UInt64 = 0
  var passes:
    [(
      code: String, created: UnixTime, expires: UnixTime, uses: UInt8, used: UInt8, enrolls: Bool
    )] = []
  var claim: UInt64?
  var policy = Policy()
  var origins: [KnownOrigin] = []
  var known = Bucket.full
  var other = Bucket.full
  /// The words of the `slip` line.
  var slip: [String]?
  var refunds: [UnixTime] = []
  var isFirstPass = false
  var charged: (isKnown: Bool, amount: GuessProbability)?
  var now = UnixTime(0)
  var origin = Origin.unknown
  var first: [String] = []
  var typed = ""
  var wanted: [String] = []
  var until: UnixTime?
  /// The words of the `after` lines.
  var after: [[String]] = []

  static func all() throws -> [DecisionCase] {
    var cases: [DecisionCase] = []
    for line in try vectorLines("decisions.txt") {
      let (key, rest) = line.parted()
      if key == "case" {
        cases.append(DecisionCase(testDescription: rest))
      } else {
        try cases[cases.count - 1].take(key, rest)
      }
    }
    return cases
  }

  private mutating func take(_ key: String, _ rest: String) throws {
    let words = rest.split(separator: " ").map(String.init)
    switch key {
    case "totp": try add(words, .totp(period: try value(words[3])), words.dropFirst(4))
    case "token":
      try add(
        Array(words.dropLast(2)), .totp(period: try value(words[3])), [words[4]], isToken: true)
      clocks[UInt64(authenticators.count)] = TokenClock(
        offset: try value(words[5]), since: UnixTime(try value(words[6])))
    case "hotp": try add(words, .hotp, words.dropFirst(3))
    case "backup":
      if words.count > 1 { usedBackupCodes |= 1 << UInt64(backupCodes.count) }
      backupCodes.append(words[0].filter { $0 != "-" })
    case "scratch":
      let place = UInt64(backupCodes.count + scratchCodes.count)
      if words.count > 1 { usedBackupCodes |= 1 << place }
      scratchCodes.append(words[0])
    case "pass":
      passes.append(
        (
          words[0].filter { $0 != "-" }, UnixTime(try value(words[1])),
          UnixTime(try value(words[2])), try value(words[3]), try value(words[4]),
          words.count > 5
        ))
    case "claim": claim = try value(rest)
    case "policy": for word in words { try Self.set(word, in: &policy) }
    case "elsewhere":
      var other = Policy()
      for word in words { try Self.set(word, in: &other) }
      var shared = policy.sharedBudget
      shared.include(SharedBudget(of: other))
      policy.shared = SharedBudgetBox(shared)
    case "known":
      let address = try #require(NetworkAddress(text: words[0]))
      origins.append(KnownOrigin(origin: address, lastSeen: UnixTime(try value(words[1]))))
    case "spent":
      let bucket = Bucket(
        spent: GuessProbability(units: try value(words[1])), since: UnixTime(try value(words[2])))
      if words[0] == "known" { known = bucket } else { other = bucket }
    case "slip": slip = words
    case "refund": refunds.append(UnixTime(try value(rest)))
    case "first-pass": isFirstPass = true
    case "charged": charged = (words[0] == "known", GuessProbability(units: try value(words[1])))
    case "at": now = UnixTime(try value(rest))
    case "from": origin = try Self.origin(rest)
    case "first": first.append(rest)
    case "type": typed = rest
    case "expect": wanted = words
    case "until": until = UnixTime(try value(rest))
    case "after": after.append(words)
    case _: throw ParseError.line(key)
    }
  }

  private mutating func add(
    _ words: [String], _ type: AuthenticatorType, _ rest: ArraySlice<String>,
    isToken: Bool = false
  ) throws {
    let algorithm = try #require(HashAlgorithm(name: words[1].utf8))
    let digits = try #require(Digits(rawValue: try value(words[2])))
    let last = try #require(rest.first)
    authenticators.append(
      try authenticator(
        UInt64(authenticators.count + 1), words[0], parameters(type, algorithm, digits),
        secret: rest.count > 1 ? secret("abcdefghijabcdefghij") : nil,
        last: last == "none" ? nil : value(last), clockOffset: isToken ? 0 : nil))
  }

  private static func set(_ word: String, in policy: inout Policy) throws {
    let parts = word.split(separator: "=").map(String.init)
    switch parts[0] {
    case "adjacent": policy.adjacentIntervals = try value(parts[1])
    case "totp": policy.totp = parts[1] == "off" ? .off : .on
    case "hotp": policy.hotp = parts[1] == "off" ? .off : .on
    case "backup": policy.backupCode = parts[1] == "off" ? .off : .on
    case "pass": policy.acceptsPasses = parts[1] != "off"
    case "ahead": policy.lookAhead = try value(parts[1])
    case "budget": policy.guessBudget = GuessProbability(units: try value(parts[1]))
    case _: throw ParseError.line(word)
    }
  }

  private static func origin(_ word: String) throws -> Origin {
    switch word {
    case "local": .local(own: true)
    case "local-other": .local(own: false)
    case "unknown": .unknown
    case _: .address(try #require(NetworkAddress(text: word)))
    }
  }
}

func value<N: FixedWidthInteger>(_ word: String) throws -> N {
  guard let number = N(word) else { throw DecisionCase.ParseError.line(word) }
  return number
}

extension String {
  /// The first word, and what follows the one space after it.
  fileprivate func parted() -> (String, String) {
    guard let space = firstIndex(of: " ") else { return (self, "") }
    return (String(self[..<space]), String(self[index(after: space)...]))
  }

  /// The bytes of a typed response: \xHH is one byte.
  func unescaped() throws -> [UInt8] {
    var result: [UInt8] = []
    var rest = self[...]
    while let character = rest.first {
      if rest.hasPrefix("\\x") {
        result.append(try #require(UInt8(rest.dropFirst(2).prefix(2), radix: 16)))
        rest = rest.dropFirst(4)
      } else {
        result += Array(String(character).utf8)
        rest = rest.dropFirst()
      }
    }
    return result
  }
}

extension NetworkAddress {
  /// An IPv4 or IPv6 address as people write it.
  init?(text: String) {
    var (four, six) = (in_addr(), in6_addr())
    if unsafe inet_pton(AF_INET, text, &four) == 1 {
      self.init(unsafe withUnsafeBytes(of: &four) { unsafe [UInt8]($0) })
    } else if unsafe inet_pton(AF_INET6, text, &six) == 1 {
      self.init(unsafe withUnsafeBytes(of: &six) { unsafe [UInt8]($0) })
    } else {
      return nil
    }
  }
}
