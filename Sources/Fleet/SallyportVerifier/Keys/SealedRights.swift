import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore

/// The rights of a host or of an invitation, as the columns `rights` have them: sealed with the row
/// that they belong to (docs/fleet-format.md).
struct SealedRights: Equatable, Sendable {
  /// The second one has lists of people.
  private static let forms: [UInt8] = [1, 2]
  /// Without these.
  private static let length = 9 + 16 * HostRight.allCases.count

  var rights: HostRights
  /// In seconds since 1970, later than those before: what was put back is known by it.
  let changed: Int64

  /// Under which it is written down, with what was revoked, up to when rights are void. No host has
  /// such a name.
  static func name(of host: HostRow) -> [UInt8] {
    host.name + OneTimePassword.bytes(of: "/rights")
  }

  /// Whether later ones were given. `end`: of that name.
  func isVoid(since end: Int64?) -> Bool { end.map { changed <= $0 } ?? false }

  /// `owner`: the values that the row itself is sealed with, but for `enrolls`.
  func sealed(under key: FleetKey, of owner: RightsOwner) throws(CryptoError) -> [UInt8] {
    let text = bytes
    return text + (try key.bind("rights", owner.values + [text]))
  }

  /// nil for ones that somebody without the key has made, or that are another row's.
  static func read(_ sealed: [UInt8], under key: FleetKey, of owner: RightsOwner) -> SealedRights? {
    let text = Array(sealed.dropLast(FleetKey.sealLength))
    guard text.count >= length, forms.contains(text[0]),
      key.isRight(seal(of: sealed), "rights", owner.values + [text])
    else { return nil }
    var (rights, place) = (HostRights(), 9)
    var lists = text[length...]
    for right in HostRight.allCases {
      rights[right] = HostRights.Allowance(
        daily: UInt32(truncatingIfNeeded: number(text[place..<place + 4])),
        more: UInt32(truncatingIfNeeded: number(text[place + 4..<place + 8])),
        until: UnixTime(Int64(bitPattern: number(text[place + 8..<place + 16]))))
      place += 16
      if text[0] == 2 { rights[right].people = people(&lists) }
    }
    // Nothing unforeseen, and none of the lists was cut off.
    guard lists.isEmpty, SealedRights(rights: rights, changed: 0).bytes.count == text.count else {
      return nil
    }
    return SealedRights(
      rights: rights, changed: Int64(bitPattern: number(text[1..<9])))
  }

  /// The seal of such a column.
  static func seal(of sealed: [UInt8]) -> [UInt8] { Array(sealed.suffix(FleetKey.sealLength)) }

  /// The next list.
  private static func people(_ bytes: inout ArraySlice<UInt8>) -> [[UInt8]] {
    let count = Int(number(bytes.prefix(2)))
    bytes = bytes.dropFirst(2)
    return (0..<count).map { _ in
      let length = Int(bytes.first ?? 0)
      defer { bytes = bytes.dropFirst(1 + length) }
      return Array(bytes.dropFirst().prefix(length))
    }
  }

  private var bytes: [UInt8] {
    let hasLists = HostRight.allCases.contains { !rights[$0].people.isEmpty }
    var text = [Self.forms[hasLists ? 1 : 0]] + number(UInt64(bitPattern: changed))
    for right in HostRight.allCases {
      let one = rights[right]
      text += number(UInt64(one.daily)).prefix(4) + number(UInt64(one.more)).prefix(4)
      text += number(UInt64(bitPattern: one.until.seconds))
    }
    guard hasLists else { return text }
    for right in HostRight.allCases {
      let people = rights[right].people
      text += number(UInt64(people.count)).prefix(2)
      for name in people { text += [UInt8(truncatingIfNeeded: name.count)] + name }
    }
    return text
  }
}

extension SealedRights {
  /// Of a row from before there were rights.
  init(formerOf host: HostRow) {
    self.init(rights: HostRights(former: host.enrolls), changed: host.joined)
  }
}

/// What rights belong to.
enum RightsOwner {
  case host(HostRow)
  case invite(InviteRow)

  fileprivate var values: [[UInt8]] {
    switch self {
    case .host(let row):
      [
        OneTimePassword.bytes(of: "host"), row.name, row.key ?? [],
        number(UInt64(bitPattern: row.joined)),
      ]
    case .invite(let row):
      [
        OneTimePassword.bytes(of: "invite"), row.digest, row.host,
        number(UInt64(bitPattern: row.until)),
      ]
    }
  }
}

extension HostRights {
  /// Of a row that was written before there were rights: what `enrolls` meant then, as often as is
  /// usual.
  init(former enrolls: Bool) { self.init(enrolls ? HostRight.allCases : []) }

  /// For people and logs.
  package var words: [String] {
    HostRight.allCases.filter { !self[$0].isNone }.map(\.word)
  }

  /// For people: each with its number where that is not the usual one, or what there is beside it.
  package var text: String {
    let words = HostRight.allCases.compactMap { right -> String? in
      let one = self[right]
      if one.isNone { return nil }
      var word = right.word
      if one.daily != right.usual { word += "(\(one.daily))" }
      if one.more > 0 {
        word += "+\(one.more) until " + (one.until.internetText ?? "\(one.until.seconds)")
        if !one.people.isEmpty {
          word += " for \(one.people.count) \(one.people.count == 1 ? "user" : "users")"
        }
      }
      return word
    }
    return words.isEmpty ? "asks" : words.joined(separator: ", ")
  }
}
