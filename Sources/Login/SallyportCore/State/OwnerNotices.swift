/// What the owner of an enrollment is told at a login. It decides nothing, so what is lost of it
/// is only not told.
package struct OwnerNotices: Equatable, Sendable {
  /// Up to when events were told to somebody whose authenticator is older than they.
  package var told = UnixTime(0)
  /// Wrong codes from other origins since the owner was told of some; 65,535 where there are more.
  package var wrongCodes: UInt16 = 0
  /// When a pass was used last, and from where, which a fleet does not keep; 1970 if none was.
  package var passUsed = UnixTime(0)
  package var passOrigin = NetworkAddress(high: 0, low: 0)
  /// When what a pass had replaced was restored last; 1970 if it never was.
  package var restored = UnixTime(0)

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
  case restored(UnixTime)

  /// More than that there never are: of wrong codes, each authenticator and each pass, the use of
  /// one, and what was restored.
  static let mostTold = 3 + Enrollment.maximumAuthenticators + Pass.maximumOpen

  /// nil: of wrong codes.
  var time: UnixTime? {
    switch self {
    case .wrongCodes: nil
    case .added(_, let time), .passGiven(let time), .passUsed(let time, _), .restored(let time):
      time
    }
  }
}

/// Which notices were told at a login: of that many wrong codes, and of all events up to `latest`.
package struct ToldNotices: Equatable, Sendable {
  package let wrongCodes: UInt16
  package let latest: UnixTime

  package init(wrongCodes: UInt16, latest: UnixTime) {
    (self.wrongCodes, self.latest) = (wrongCodes, latest)
  }

  package init(_ notices: [OwnerNotice]) {
    var (count, latest) = (UInt16(0), UnixTime(0))
    for notice in notices {
      if case .wrongCodes(let some) = notice { count = some }
      latest = max(latest, notice.time ?? latest)
    }
    self.init(wrongCodes: count, latest: latest)
  }

  /// Of what is to be told by now, what was told then.
  package func among(_ notices: [OwnerNotice]) -> [OwnerNotice] {
    notices.compactMap { notice in
      if case .wrongCodes(let some) = notice { return .wrongCodes(min(some, wrongCodes)) }
      return notice.time.map { $0 <= latest } == true ? notice : nil
    }
  }
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
    if notices.restored > since { all.append(.restored(notices.restored)) }
    return all
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
    restored = fields.time()
  }

  func put(into fields: inout ByteWriter) {
    fields.put(OwnerNotices.magic)
    fields.put(told)
    fields.put(UInt64(wrongCodes), bytes: 2)
    fields.put(passUsed)
    fields.put(passOrigin.high)
    fields.put(passOrigin.low)
    fields.put(restored)
  }
}
