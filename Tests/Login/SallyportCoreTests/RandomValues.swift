import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  mutating func label() -> Label {
    let scalars: [Unicode.Scalar] = [
      "a", "Z", "0", " ", "=", "#", "[", "\"", "%", "é", "ü", "電", "😀",
    ]
    while true {
      let text = (0..<number(1...12)).map { _ in pick(scalars) }
      if let label = Label(Array(String(String.UnicodeScalarView(text)).utf8)) { return label }
    }
  }

  mutating func userName() -> UserName {
    while true {
      let likely = [UInt8]("abcXYZ019_.@-=#[] \\$%".utf8)
      let name = (0..<number(1...30)).map { _ in flip() ? pick(likely) : byte() }
      if let name = UserName(name) { return name }
    }
  }

  mutating func pastTime() -> UnixTime { UnixTime(Int64(number64() >> 1)) }

  mutating func parameters() -> CodeParameters {
    let period = UInt32(pick([15, 30, 60, 300, number(15...300)]))
    return CodeParameters(
      type: flip() ? .hotp : .totp(period: period), algorithm: pick(HashAlgorithm.allCases),
      digits: pick(Digits.allCases)) ?? .standard
  }

  mutating func enrollment() throws -> Enrollment {
    var authenticators: [Authenticator] = []
    for _ in 0..<number(1...8) {
      let parameters = parameters()
      let new = Authenticator(
        id: id(), name: label(), parameters: parameters,
        secret: try secret(bytes(pick([1, 10, 20, 32, 64, 128, number(1...128)]))),
        initialLastAccepted: flip() ? nil : number64(), created: pastTime(),
        clockOffset: clockOffset(of: parameters.type))
      if !authenticators.contains(where: { $0.name == new.name }) { authenticators.append(new) }
    }
    let set = BackupCodeSet(
      id: id(), salt: bytes(16), digests: (0..<number(0...32)).map { _ in bytes(32) },
      scratchDigests: flip() ? [] : (0..<number(0...32)).map { _ in bytes(32) })
    return Enrollment(
      id: id(), user: userName(), uid: flip() ? nil : UInt32(number(0...4_294_967_294)),
      created: pastTime(), authenticators: authenticators, backupCodes: flip() ? nil : set)
  }

  /// Of every second TOTP.
  mutating func clockOffset(of type: AuthenticatorType) -> Int32? {
    guard case .totp(let period) = type, flip() else { return nil }
    let most = Int32(Authenticator.mostClockOffset(period))
    return pick([0, most, -most, Int32(number(0...Int(most)))])
  }

  mutating func clock() -> TokenClock {
    TokenClock(offset: Int32(number(0...120_000)) - 60_000, since: anyTime())
  }

  mutating func origin() -> Origin {
    switch number(0...3) {
    case 0: .unknown
    case 1: .local(own: flip())
    case _: .address(address())
    }
  }

  mutating func address() -> NetworkAddress {
    flip()
      ? NetworkAddress(high: next(), low: next())
      : NetworkAddress(high: 0, low: 0xffff_0000_0000 | next() >> 32)
  }

  mutating func use() -> Use? {
    flip() ? nil : Use(time: anyTime(), origin: origin(), service: flip() ? nil : label())
  }

  mutating func anyTime() -> UnixTime { UnixTime(Int64(bitPattern: number64())) }

  mutating func loginState() -> LoginState {
    LoginState(
      enrollmentID: id(),
      authenticators: (0..<number(0...8)).map { _ in
        AuthenticatorState(
          id: id(), lastAccepted: flip() ? nil : number64(),
          drift: Int32(truncatingIfNeeded: next()), lastUse: use(),
          clock: flip() ? nil : clock())
      },
      backupCodes: flip() ? nil : BackupCodeState(setID: id(), used: number64(), lastUse: use()),
      passes: (0..<number(0...3)).map { _ in
        PassState(id: id(), used: byte(), seen: anyTime(), claim: flip() ? 0 : next())
      },
      known: Bucket(spent: GuessProbability(units: number64()), since: anyTime()),
      other: Bucket(spent: GuessProbability(units: number64()), since: anyTime()),
      slip: flip()
        ? nil
        : Slip(
          authenticator: id(), position: number64(), time: anyTime(),
          amount: GuessProbability(units: number64())),
      refunds: Refunds(last: anyTime(), second: anyTime(), third: anyTime()),
      origins: (0..<number(0...10)).map { _ in
        KnownOrigin(origin: address(), lastSeen: anyTime())
      },
      remembered: (0..<number(0...10)).map { _ in
        RememberedOrigin(
          origin: NumericAddress(high: next(), low: next()), service: label(), granted: anyTime())
      })
  }

  /// A hostile copy of `text`: bytes changed, put in, left out, lines doubled, moved or lost, cut
  /// off.
  mutating func mutated(_ text: [UInt8]) -> [UInt8] {
    var text = text
    for _ in 0..<number(1...4) { mutate(&text) }
    return text
  }

  private mutating func mutate(_ text: inout [UInt8]) {
    guard !text.isEmpty else { return }
    let place = number(0...text.count - 1)
    let likely = [UInt8]("\n\n=[]# \t\0a0129-".utf8) + [0xff, 0x80, 0x0d]
    switch number(0...6) {
    case 0: text[place] = byte()
    case 1: text[place] = pick(likely)
    case 2: text.insert(pick(likely), at: place)
    case 3: text.remove(at: place)
    case 4: text.removeLast(text.count - place)
    case 5: mutateLines(&text)
    case _: text.removeSubrange(place..<min(text.count, place + number(1...200)))
    }
  }

  private mutating func mutateLines(_ text: inout [UInt8]) {
    var lines = text.split(separator: 0x0a, omittingEmptySubsequences: false).map { Array($0) }
    let (one, two) = (number(0...lines.count - 1), number(0...lines.count - 1))
    switch number(0...2) {
    case 0: lines.insert(lines[one], at: two)
    case 1: lines.remove(at: one)
    case _: lines.swapAt(one, two)
    }
    text = Array(lines.joined(separator: [0x0a]))
  }
}
