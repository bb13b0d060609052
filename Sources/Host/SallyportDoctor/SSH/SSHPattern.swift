import SallyportCore
import SallyportSystem

/// What a list of patterns says of a text.
enum SSHMatch: Equatable {
  case yes, no
  /// A pattern with `!` matches it, whatever the others do.
  case excluded
}

/// A pattern with `*` and `?`, compared by bytes as sshd does it.
struct SSHPattern: Hashable {
  private let bytes: [UInt8]

  init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

  var isLiteral: Bool { !bytes.contains { $0 == SSHPattern.any || $0 == SSHPattern.one } }

  private static let any = UInt8(ascii: "*")
  private static let one = UInt8(ascii: "?")

  func matches(_ text: [UInt8]) -> Bool {
    var (at, next) = (0, 0)
    // Where the last `*` is, and what it was tried with.
    var star: (next: Int, at: Int)?
    while at < text.count {
      if next < bytes.count, bytes[next] == SSHPattern.any {
        star = (next + 1, at)
        next += 1
      } else if next < bytes.count, bytes[next] == SSHPattern.one || bytes[next] == text[at] {
        (at, next) = (at + 1, next + 1)
      } else if let last = star {
        star = (last.next, last.at + 1)
        (at, next) = (last.at + 1, last.next)
      } else {
        return false
      }
    }
    return bytes[next...].allSatisfy { $0 == SSHPattern.any }
  }
}

/// `a,b*,!c`: names of users, groups, hosts or domains.
struct SSHPatternList {
  private let patterns: [(pattern: SSHPattern, isNegated: Bool)]

  init(_ text: String) {
    patterns = text.split(separator: ",", omittingEmptySubsequences: false).map { word in
      word.hasPrefix("!") ? (SSHPattern(word.dropFirst()), true) : (SSHPattern(word), false)
    }
  }

  func match(_ text: [UInt8]) -> SSHMatch {
    var found = SSHMatch.no
    for one in patterns where one.pattern.matches(text) {
      if one.isNegated { return .excluded }
      found = .yes
    }
    return found
  }

  /// Of several texts, none of which may be excluded.
  func match(any texts: [[UInt8]]) -> Bool {
    let found = texts.map(match)
    return found.contains(.yes) && !found.contains(.excluded)
  }
}

/// `192.0.2.0/24,!192.0.2.9,2001:db8::*`: addresses, as ranges or by their text.
struct SSHAddressList {
  private struct Part {
    let range: AddressRange?
    let pattern: SSHPattern
    let isNegated: Bool
  }

  private let parts: [Part]

  init(_ text: String) {
    parts = text.split(separator: ",").map { word in
      let plain = word.hasPrefix("!") ? word.dropFirst() : word
      return Part(
        range: AddressRange(Array(plain.utf8), Addresses.numeric), pattern: SSHPattern(plain),
        isNegated: plain.count != word.count)
    }
  }

  func match(_ address: String) -> SSHMatch {
    let text = Array(address.utf8)
    guard let number = Addresses.numeric(text) else { return .no }
    var found = SSHMatch.no
    for part in parts where part.range?.holds(number) ?? part.pattern.matches(text) {
      if part.isNegated { return .excluded }
      found = .yes
    }
    return found
  }

  /// How many patterns are about the address; those that are about each do not count.
  func count(_ address: String) -> Int {
    let text = Array(address.utf8)
    guard let number = Addresses.numeric(text) else { return 0 }
    return parts.count { $0.range?.holds(number) ?? $0.pattern.matches(text) }
  }
}

/// Where a connection comes from, by name or by address: HOST of USER@HOST, and `from=` of a key.
struct SSHHostList {
  private let addresses: SSHAddressList
  private let names: SSHPatternList

  init(_ text: String) {
    (addresses, names) = (SSHAddressList(text), SSHPatternList(text.lowercased()))
  }

  func holds(_ connection: SSHConnection) -> Bool {
    let address = addresses.match(connection.address)
    let name = names.match(Array(connection.host.lowercased().utf8))
    return address != .excluded && name != .excluded && (address == .yes || name == .yes)
  }
}
