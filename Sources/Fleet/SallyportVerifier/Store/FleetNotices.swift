import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// What an owner is told, beside his state. It is written only where 4 may be: older verifiers do
// not read it. Where a pass was used is left out: no place on one host is told on another.

extension FleetStore {
  /// Whether a code of this authenticator, or a backup code, was accepted there a moment ago, on
  /// whatever verifier: the host that asks has let him in.
  func hasJustLetIn(_ account: Account?, by name: Label?, from origin: Origin)
    throws(StoreTrouble) -> Bool
  {
    guard let account, let row = try rowBesideDecoy(of: account.name.bytes),
      let enrollment = row.document.enrollment
    else { return false }
    return row.state?.hasJustUsed(name, of: enrollment, from: origin, at: try now()) == true
  }
}

extension OwnerNotices {
  static let length = 26

  var bytes: [UInt8] {
    [told, passUsed, restored].flatMap { number(UInt64(bitPattern: $0.seconds)) }
      + number(UInt64(wrongCodes)).prefix(2)
  }

  /// nil for what `bytes` does not give where something is told.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    self.init()
    func time(_ place: Int) -> UnixTime {
      UnixTime(Int64(bitPattern: number(bytes[place..<place + 8])))
    }
    (told, passUsed, restored) = (time(0), time(8), time(16))
    wrongCodes = UInt16(truncatingIfNeeded: number(bytes[24..<26]))
    if self == OwnerNotices() { return nil }
  }

  /// As a fleet keeps them.
  var withoutPlace: OwnerNotices {
    var notices = self
    notices.passOrigin = NetworkAddress(high: 0, low: 0)
    return notices
  }
}
