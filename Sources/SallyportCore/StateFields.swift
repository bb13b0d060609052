// The fields of a state record, each kind written and read side by side.

struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ more: [UInt8]) { bytes += more }
  mutating func put(_ value: UInt8) { bytes.append(value) }
  mutating func put(_ value: UInt32) {
    for shift in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt32(shift)))) }
  }
  mutating func put(_ value: UInt64) {
    for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(shift)))) }
  }
  mutating func put(_ time: UnixTime) { put(UInt64(bitPattern: time.seconds)) }
}

/// Reads fields one after the other; nil once the bytes do not hold what is asked for.
struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
  mutating func number8() -> UInt8? { take(1)?.first }
  mutating func number32() -> UInt32? {
    take(4)?.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
  mutating func number64() -> UInt64? {
    take(8)?.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
  mutating func time() -> UnixTime? { number64().map { UnixTime(Int64(bitPattern: $0)) } }

  /// Between 0 and `most` elements, counted by a byte.
  mutating func list<Element>(
    atMost most: Int, _ element: (inout ByteReader) -> Element?
  ) -> [Element]? {
    guard let count = number8(), Int(count) <= most else { return nil }
    var elements: [Element] = []
    for _ in 0..<count {
      guard let next = element(&self) else { return nil }
      elements.append(next)
    }
    return elements
  }

  /// A flag byte, then the value if it is 1. The outer nil: malformed.
  mutating func maybe<Value>(_ value: (inout ByteReader) -> Value?) -> Value?? {
    switch number8() {
    case 0: return .some(nil)
    case 1: return value(&self).map { .some($0) }
    case _: return nil
    }
  }
}

extension ByteWriter {
  mutating func put(_ state: LoginState) {
    put(state.enrollmentID)
    put(UInt8(truncatingIfNeeded: state.authenticators.count))
    for authenticator in state.authenticators { put(authenticator) }
    maybe(state.backupCodes) { $0.put($1) }
    put(state.known)
    put(state.other)
    put(UInt8(truncatingIfNeeded: state.origins.count))
    for origin in state.origins {
      put(origin.origin)
      put(origin.lastSeen)
    }
  }

  private mutating func put(_ authenticator: AuthenticatorState) {
    put(authenticator.id)
    maybe(authenticator.lastAccepted) { $0.put($1) }
    put(UInt32(bitPattern: authenticator.drift))
    maybe(authenticator.lastUse) { $0.put($1) }
  }

  private mutating func put(_ codes: BackupCodeState) {
    put(codes.setID)
    put(codes.used)
    maybe(codes.lastUse) { $0.put($1) }
  }

  private mutating func put(_ bucket: Bucket) {
    put(bucket.spent.units)
    put(bucket.since)
  }

  private mutating func put(_ address: NetworkAddress) {
    put(address.high)
    put(address.low)
  }

  private mutating func put(_ use: Use) {
    put(use.time)
    switch use.origin {
    case .unknown: put(UInt8(0))
    case .local(let own): put(UInt8(own ? 1 : 2))
    case .address(let address):
      put(UInt8(3))
      put(address)
    }
    let service = use.service?.bytes ?? []
    put(UInt8(truncatingIfNeeded: service.count))
    put(service)
  }

  private mutating func maybe<Value>(_ value: Value?, _ put: (inout ByteWriter, Value) -> Void) {
    self.put(UInt8(value == nil ? 0 : 1))
    if let value { put(&self, value) }
  }
}

extension ByteReader {
  mutating func loginState() -> LoginState? {
    guard let id = number64(),
      let authenticators = list(
        atMost: Enrollment.maximumAuthenticators, { $0.authenticatorState() }),
      let backupCodes = maybe({ $0.backupCodeState() }),
      let known = bucket(), let other = bucket(),
      let origins = list(atMost: LoginState.maximumOrigins, { $0.knownOrigin() })
    else { return nil }
    return LoginState(
      enrollmentID: id, authenticators: authenticators, backupCodes: backupCodes, known: known,
      other: other, origins: origins)
  }

  private mutating func authenticatorState() -> AuthenticatorState? {
    guard let id = number64(), let lastAccepted = maybe({ $0.number64() }),
      let drift = number32(), let lastUse = maybe({ $0.use() })
    else { return nil }
    return AuthenticatorState(
      id: id, lastAccepted: lastAccepted, drift: Int32(bitPattern: drift), lastUse: lastUse)
  }

  private mutating func backupCodeState() -> BackupCodeState? {
    guard let set = number64(), let used = number64(), let lastUse = maybe({ $0.use() }) else {
      return nil
    }
    return BackupCodeState(setID: set, used: used, lastUse: lastUse)
  }

  private mutating func bucket() -> Bucket? {
    guard let spent = number64(), let since = time() else { return nil }
    return Bucket(spent: Luck(units: spent), since: since)
  }

  private mutating func knownOrigin() -> KnownOrigin? {
    guard let address = address(), let lastSeen = time() else { return nil }
    return KnownOrigin(origin: address, lastSeen: lastSeen)
  }

  private mutating func address() -> NetworkAddress? {
    guard let high = number64(), let low = number64() else { return nil }
    return NetworkAddress(high: high, low: low)
  }

  private mutating func use() -> Use? {
    guard let time = time(), let origin = origin(), let count = number8(),
      let service = take(Int(count))
    else { return nil }
    if service.isEmpty { return Use(time: time, origin: origin, service: nil) }
    guard let label = Label(service) else { return nil }
    return Use(time: time, origin: origin, service: label)
  }

  private mutating func origin() -> Origin? {
    switch number8() {
    case 0: return .unknown
    case 1: return .local(own: true)
    case 2: return .local(own: false)
    case 3: return address().map { .address($0) }
    case _: return nil
    }
  }
}
