/// What the owner of an enrollment is told at a login, where the state is in a file. It decides
/// nothing, so what is lost of it is only not told.
package struct OwnerNotices: Equatable, Sendable {
  /// Up to when events were told to somebody whose authenticator is older than they.
  package var told = UnixTime(0)
  /// Wrong codes from other origins since the owner was told of some; 65,535 where there are more.
  package var wrongCodes: UInt16 = 0
  /// When a pass was used last, and from where; 1970 if none was.
  package var passUsed = UnixTime(0)
  package var passOrigin = NetworkAddress(high: 0, low: 0)

  package init() {}

  /// For how many seconds an event is told again, where nobody older than it was told.
  static let lifetime: Int64 = 14 * 86_400
}

/// One thing that the owner is told.
package enum OwnerNotice: Equatable, Sendable {
  case wrongCodes(UInt16)
  case added(Label, UnixTime)
  case passGiven(UnixTime)
  /// nil: not from an address.
  case passUsed(UnixTime, from: NetworkAddress?)
}

extension LoginState {
  /// What is to be told at `now`.
  package func notices(of enrollment: Enrollment, at now: UnixTime) -> [OwnerNotice] {
    var all: [OwnerNotice] = []
    if notices.wrongCodes > 0 { all.append(.wrongCodes(notices.wrongCodes)) }
    let recent = now.seconds > OwnerNotices.lifetime ? now.seconds - OwnerNotices.lifetime : 0
    // After a clock that ran ahead all of them are told once more.
    let told = notices.told > now ? UnixTime(0) : notices.told
    let since = max(told, max(enrollment.created, UnixTime(recent)))
    for one in enrollment.authenticators where one.created > since {
      all.append(.added(one.name, one.created))
    }
    for pass in enrollment.passes where pass.created > since {
      all.append(.passGiven(pass.created))
    }
    if notices.passUsed > since {
      let from = notices.passOrigin
      all.append(.passUsed(notices.passUsed, from: from.high | from.low == 0 ? nil : from))
    }
    return all
  }

  /// These were told at a login. Events count as told only where the authenticator that proved the
  /// login is older than all of them: the one that a thief added does not use up the notice of it.
  package mutating func settle(
    _ told: [OwnerNotice], by proof: Proof, of enrollment: Enrollment
  ) {
    var (older, latest) = (UnixTime(Int64.min), notices.told)
    if case .authenticator(let name, _) = proof, let index = enrollment.index(of: name) {
      older = enrollment.authenticators[index].created
    }
    var isTold = true
    for notice in told {
      switch notice {
      case .wrongCodes(let count): notices.wrongCodes -= min(notices.wrongCodes, count)
      case .added(_, let time), .passGiven(let time), .passUsed(let time, _):
        if time <= older || older.seconds == Int64.min { isTold = false }
        latest = max(latest, time)
      }
    }
    if isTold { notices.told = latest }
  }

  /// Takes down what came of a response from there, for the owner.
  mutating func takeDown(_ verdict: Decision.Verdict, _ use: Use) {
    switch verdict {
    case .refuse(let refusal):
      guard case .wrongCode = refusal, !isKnown(use.origin) else { return }
      if notices.wrongCodes < UInt16.max { notices.wrongCodes += 1 }
    case .accept(let proof):
      guard proof.isPass else { return }
      notices.passUsed = use.time
      notices.passOrigin = NetworkAddress(high: 0, low: 0)
      if case .address(let address) = use.origin { notices.passOrigin = address }
    }
  }
}

// The fields of a slot of the state file, in the bytes between the state and the checksum, which
// versions before this one do not read, and write as zeros.

extension OwnerNotices {
  /// "SPNOTICE", as a number.
  private static let magic: UInt64 = 0x4543_4954_4f4e_5053
  static let size = 50

  init(from fields: inout ByteReader) {
    self.init()
    guard fields.number64() == OwnerNotices.magic else { return }
    told = fields.time()
    wrongCodes = UInt16(truncatingIfNeeded: fields.number(bytes: 2))
    passUsed = fields.time()
    passOrigin = NetworkAddress(high: fields.number64(), low: fields.number64())
  }

  func put(into fields: inout ByteWriter) {
    fields.put(OwnerNotices.magic)
    fields.put(told)
    fields.put(UInt64(wrongCodes), bytes: 2)
    fields.put(passUsed)
    fields.put(passOrigin.high)
    fields.put(passOrigin.low)
  }
}
