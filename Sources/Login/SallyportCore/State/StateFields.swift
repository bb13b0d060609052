import OneTimePassword

// The fields of a state record, each kind with its writer and its reader.

/// Writes fields one after the other. If one does not fit, `isWhole` becomes false and stays so.
package struct ByteWriter {
  package private(set) var bytes: [UInt8]
  /// The offset of the next field.
  package internal(set) var position = 0
  package private(set) var isWhole = true

  package init(count: Int) { bytes = [UInt8](repeating: 0, count: count) }

  /// For a value that cannot be stored.
  package mutating func fail() { isWhole = false }

  package mutating func put(_ more: [UInt8]) {
    // SAFETY: the buffer lives for the call.
    unsafe more.withUnsafeBytes { unsafe put($0) }
  }

  package mutating func put(_ value: UInt64) { put(value, bytes: 8) }

  /// The lowest bytes of a number, in little-endian order.
  package mutating func put(_ value: UInt64, bytes count: Int) {
    // SAFETY: count is at most 8, and the buffer lives for the call.
    unsafe withUnsafeBytes(of: value.littleEndian) {
      unsafe put(UnsafeRawBufferPointer(rebasing: $0[..<count]))
    }
  }

  @inline(never) private mutating func put(_ more: UnsafeRawBufferPointer) {
    guard more.count <= bytes.count - position else { return fail() }
    // SAFETY: there are that many bytes from the position on.
    unsafe bytes.withUnsafeMutableBytes {
      unsafe UnsafeMutableRawBufferPointer(rebasing: $0[position...]).copyMemory(from: more)
    }
    position += more.count
  }

  @inline(never) package mutating func put(count: Int) {
    put(UInt64(truncatingIfNeeded: count), bytes: 1)
  }
  package mutating func put(_ time: UnixTime) { put(UInt64(bitPattern: time.seconds)) }

  /// Whether a value follows.
  package mutating func put(isThere: Bool) { put(count: isThere ? 1 : 0) }
}

/// Reads fields one after the other. From the first field that is incomplete or invalid on, it
/// returns zeros, and `isWhole` stays false.
package struct ByteReader {
  private let bytes: [UInt8]
  private let end: Int
  private var position: Int
  package private(set) var isWhole = true

  /// `range` is limited to the bytes that exist.
  package init(_ bytes: [UInt8], _ range: Range<Int>) {
    let range = range.clamped(to: 0..<bytes.count)
    self.bytes = bytes
    (position, end) = (range.lowerBound, range.upperBound)
  }

  package var isAtEnd: Bool { position == end }

  package mutating func fail() {
    isWhole = false
    position = end
  }

  @inline(never) package mutating func take(_ count: Int) -> [UInt8] {
    guard count <= end - position else {
      fail()
      return []
    }
    defer { position += count }
    // SAFETY: checked above.
    return unsafe bytes.withUnsafeBytes {
      unsafe copy(of: UnsafeRawBufferPointer(rebasing: $0[position..<position + count]))
    }
  }

  /// A little-endian number of up to eight bytes.
  @inline(never) package mutating func number(bytes count: Int) -> UInt64 {
    guard count <= end - position else {
      fail()
      return 0
    }
    var value: UInt64 = 0
    // SAFETY: count is at most 8, and there are that many bytes from the position on.
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe withUnsafeMutableBytes(of: &value) {
        unsafe $0.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: bytes[position..<position + count]))
      }
    }
    position += count
    return UInt64(littleEndian: value)
  }

  package mutating func number64() -> UInt64 { number(bytes: 8) }
  package mutating func time() -> UnixTime { UnixTime(Int64(bitPattern: number64())) }

  /// A byte that says how many values follow, or which of several.
  @inline(never) package mutating func count(atMost most: Int) -> Int {
    let count = Int(truncatingIfNeeded: number(bytes: 1))
    if count > most { fail() }
    return isWhole ? count : 0
  }

  /// Whether a value follows.
  package mutating func isThere() -> Bool { count(atMost: 1) == 1 }

  /// A name of that many bytes; nil if there is none.
  package mutating func label() -> Label? {
    let name = take(count(atMost: Label.maximumLength))
    let label = Label(name)
    if label == nil, !name.isEmpty { fail() }
    return label
  }
}

extension ByteWriter {
  package mutating func put(_ state: LoginState) {
    put(state.enrollmentID)
    put(count: state.authenticators.count)
    for authenticator in state.authenticators { put(authenticator) }
    put(isThere: state.backupCodes != nil)
    if let codes = state.backupCodes { put(codes) }
    put(state.known)
    put(state.other)
    put(state.slip)
    put(state.refunds.last)
    put(state.refunds.second)
    put(state.refunds.third)
    put(count: state.origins.count)
    for origin in state.origins {
      put(origin.origin)
      put(origin.lastSeen)
    }
    put(count: state.remembered.count)
    for remembered in state.remembered {
      put(remembered.origin.high)
      put(remembered.origin.low)
      put(remembered.service)
      put(remembered.granted)
    }
    put(clocks: state.authenticators)
    // The version before reads a state without passes.
    guard !state.passes.isEmpty else { return }
    put(count: state.passes.count)
    for pass in state.passes {
      put(pass.id)
      put(count: Int(pass.used))
      put(pass.seen)
    }
    // The version before reads a state whose passes nobody has claimed.
    guard state.passes.contains(where: { $0.claim != 0 }) else { return }
    for pass in state.passes { put(pass.claim) }
  }

  private mutating func put(_ authenticator: AuthenticatorState) {
    put(authenticator.id)
    put(isThere: authenticator.lastAccepted != nil)
    if let last = authenticator.lastAccepted { put(last) }
    put(UInt64(UInt32(bitPattern: authenticator.drift)), bytes: 4)
    put(authenticator.lastUse)
  }

  /// The version before reads a state without tokens.
  private mutating func put(clocks all: [AuthenticatorState]) {
    guard all.contains(where: { $0.clock != nil }) else { return }
    put(count: TokenClock.mark)
    for one in all {
      put(isThere: one.clock != nil)
      guard let clock = one.clock else { continue }
      put(UInt64(UInt32(bitPattern: clock.offset)), bytes: 4)
      put(clock.since)
    }
  }

  private mutating func put(_ codes: BackupCodeState) {
    put(codes.setID)
    put(codes.used)
    put(codes.lastUse)
  }

  private mutating func put(_ bucket: Bucket) {
    put(bucket.spent.units)
    put(bucket.since)
  }

  /// Without a slip it writes as many bytes, so that the time does not show that a code was close.
  private mutating func put(_ slip: Slip?) {
    put(slip?.authenticator ?? 0)
    put(slip?.position ?? 0)
    put(slip?.time ?? UnixTime(0))
    put(slip?.amount.units ?? 0)
  }

  private mutating func put(_ address: NetworkAddress) {
    put(address.high)
    put(address.low)
  }

  @inline(never) private mutating func put(_ use: Use?) {
    put(isThere: use != nil)
    guard let use else { return }
    put(use.time)
    switch use.origin {
    case .unknown: put(count: 0)
    case .local(let own): put(count: own ? 1 : 2)
    case .address(let address):
      put(count: 3)
      put(address)
    }
    put(use.service)
  }

  @inline(never) package mutating func put(_ label: Label?) {
    let name = label?.bytes ?? []
    put(count: name.count)
    put(name)
  }
}

extension ByteReader {
  /// Valid only if the reader then reports success at the end of its input.
  package mutating func loginState() -> LoginState {
    var state = LoginState(enrollmentID: number64())
    for _ in 0..<count(atMost: Enrollment.maximumAuthenticators) {
      state.authenticators.append(authenticatorState())
    }
    if isThere() { state.backupCodes = backupCodeState() }
    state.known = bucket()
    state.other = bucket()
    state.slip = slip()
    state.refunds = Refunds(last: time(), second: time(), third: time())
    for _ in 0..<count(atMost: LoginState.readableOrigins) {
      state.origins.append(KnownOrigin(origin: address(), lastSeen: time()))
    }
    for _ in 0..<count(atMost: LoginState.maximumRemembered) {
      let origin = NumericAddress(high: number64(), low: number64())
      if let service = label() {
        state.remembered.append(
          RememberedOrigin(origin: origin, service: service, granted: time()))
      } else {
        fail()
      }
    }
    // Without passes and tokens nothing follows.
    guard !isAtEnd else { return state }
    var passes = count(atMost: TokenClock.mark)
    if passes == TokenClock.mark {
      takeClocks(of: &state.authenticators)
      guard !isAtEnd else { return state }
      passes = count(atMost: Pass.maximumOpen)
    }
    if passes == 0 || passes > Pass.maximumOpen { fail() }
    for _ in 0..<(isWhole ? passes : 0) {
      state.passes.append(
        PassState(id: number64(), used: UInt8(truncatingIfNeeded: number(bytes: 1)), seen: time()))
    }
    // Without claims nothing follows.
    guard !isAtEnd else { return state }
    for index in state.passes.indices { state.passes[index].claim = number64() }
    if !state.passes.contains(where: { $0.claim != 0 }) { fail() }
    return state
  }

  private mutating func authenticatorState() -> AuthenticatorState {
    AuthenticatorState(
      id: number64(), lastAccepted: isThere() ? number64() : nil,
      drift: Int32(truncatingIfNeeded: number(bytes: 4)), lastUse: use())
  }

  private mutating func takeClocks(of all: inout [AuthenticatorState]) {
    let most = Authenticator.mostClockOffset(CodeParameters.periods.upperBound)
    for index in all.indices where isThere() {
      let offset = Int32(truncatingIfNeeded: number(bytes: 4))
      if offset.magnitude > most { fail() }
      all[index].clock = TokenClock(offset: offset, since: time())
    }
    if !all.contains(where: { $0.clock != nil }) { fail() }
  }

  private mutating func backupCodeState() -> BackupCodeState {
    BackupCodeState(setID: number64(), used: number64(), lastUse: use())
  }

  private mutating func bucket() -> Bucket {
    Bucket(spent: GuessProbability(units: number64()), since: time())
  }

  private mutating func slip() -> Slip? {
    let slip = Slip(
      authenticator: number64(), position: number64(), time: time(),
      amount: GuessProbability(units: number64()))
    return slip.authenticator == 0 ? nil : slip
  }

  private mutating func address() -> NetworkAddress {
    NetworkAddress(high: number64(), low: number64())
  }

  @inline(never) private mutating func use() -> Use? {
    isThere() ? Use(time: time(), origin: origin(), service: label()) : nil
  }

  private mutating func origin() -> Origin {
    switch count(atMost: 3) {
    case 1: .local(own: true)
    case 2: .local(own: false)
    case 3: .address(address())
    case _: .unknown
    }
  }
}
