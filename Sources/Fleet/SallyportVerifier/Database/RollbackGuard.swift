import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

/// What a verifier has seen of a user, in 64 bytes. If the database has less than that, a save was
/// lost, by a restored backup or a row that was put back.
struct LastSeen: Equatable, Sendable {
  /// Of the state.
  var version: UInt64
  /// Of the document. The following values belong to this document only.
  var serial: UInt64
  /// The beginning of the digest of the state as it stands in the database.
  var digest: UInt64
  /// Which backup codes are used.
  var used: UInt64 = 0
  /// 1 + the last accepted position of two authenticators, counters first, since time does not use
  /// up their codes; 0 for none.
  var first: UInt64 = 0
  var second: UInt64 = 0
  /// The distrust number under which the version was seen: after a later one it says nothing of
  /// others.
  let distrust: UInt64
  let isEnrolled: Bool

  init(
    version: UInt64, serial: UInt64, digest: UInt64, distrust: UInt64, _ enrollment: Enrollment?,
    _ state: LoginState?
  ) {
    (self.version, self.serial, self.digest) = (version, serial, digest)
    (self.distrust, isEnrolled) = (distrust, enrollment != nil)
    guard let enrollment, let state else { return }
    used = enrollment.backupCodes?.id == state.backupCodes?.setID ? state.backupCodes?.used ?? 0 : 0
    let kept = enrollment.kept.map { state.position(of: $0) }
    (first, second) = (kept.first ?? 0, kept.dropFirst().first ?? 0)
  }

  /// Whether something is used here that is not used there.
  func hasMore(than other: LastSeen) -> Bool {
    serial == other.serial
      && (used & ~other.used != 0 || first > other.first || second > other.second)
  }

  /// Both merged, with the newer one's version.
  func joined(with newer: LastSeen) -> LastSeen {
    guard newer.serial == serial else {
      let isAfterLoss = !isEnrolled && newer.distrust > distrust
      return newer.serial > serial || isAfterLoss ? newer : self
    }
    var both = newer.version >= version ? newer : self
    both.used = used | newer.used
    both.first = max(first, newer.first)
    both.second = max(second, newer.second)
    return both
  }

  /// Marks as used in the state what is used here.
  func use(in state: inout LoginState, of enrollment: Enrollment) {
    if let set = enrollment.backupCodes, state.backupCodes?.setID == set.id {
      state.backupCodes?.used |= used
    }
    for (id, kept) in zip(enrollment.kept, [first, second]) where kept > 0 {
      guard let index = state.authenticators.firstIndex(where: { $0.id == id }) else { continue }
      let last = state.authenticators[index].lastAccepted
      state.authenticators[index].lastAccepted = max(last ?? 0, kept - 1)
    }
  }
}

extension Enrollment {
  /// The authenticators whose last accepted position is kept.
  fileprivate var kept: [UInt64] {
    let counters = authenticators.filter { $0.parameters.type == .hotp }
    let others = authenticators.filter { $0.parameters.type != .hotp }
    return (counters + others).prefix(2).map(\.id)
  }
}

extension LoginState {
  fileprivate func position(of id: UInt64) -> UInt64 {
    guard let last = authenticators.first(where: { $0.id == id })?.lastAccepted else { return 0 }
    return last < UInt64.max ? last + 1 : last
  }

  /// For a state after which later ones may have been lost, this often, saved before this time:
  /// beyond what `distrustLoss` takes, codes of each counter count as used for each loss, since one
  /// who logged in between two was that far already.
  mutating func distrust(of enrollment: Enrollment, before time: UnixTime, losses: UInt64) {
    distrustLoss(of: enrollment, at: time)
    for (index, authenticator) in enrollment.authenticators.enumerated()
    where index < authenticators.count && authenticator.parameters.type == .hotp {
      guard let last = authenticators[index].lastAccepted else { continue }
      let lost = Self.countersLost * min(max(losses, 1), DistrustNumber.count) - 1
      authenticators[index].lastAccepted = last < UInt64.max - lost ? last + lost : last
    }
  }

  /// Of one counter, for each loss; the first of them is that of `distrustLoss`.
  private static let countersLost: UInt64 = 10
}

/// A user's name, for this process: 128 bits of a digest of it and of what only this process
/// knows. So nobody can invent a name with the same ones as somebody's.
struct NameMark: Hashable, Sendable {
  fileprivate let (high, low): (UInt64, UInt64)
}

/// What this verifier has seen of each user; it starts empty with the process.
final class RollbackGuard: Sendable {
  private let users = Locked<[NameMark: LastSeen]>([:])
  private let secret: [UInt8]

  init() throws(StoreTrouble) { secret = try Random.secret(count: 32).bytes(in: 0..<32) }

  func mark(of name: some Sequence<UInt8>) throws(CryptoError) -> NameMark {
    let digest = try SHA256.digest(secret + name)
    return NameMark(high: number(digest.prefix(8)), low: number(digest.dropFirst(8).prefix(8)))
  }

  /// nil: not seen.
  subscript(_ user: NameMark) -> LastSeen? { users.withLock { $0[user] } }

  func raise(_ user: NameMark, to seen: LastSeen) {
    users.withLock { $0[user] = $0[user]?.joined(with: seen) ?? seen }
  }

  /// The versions that were seen under this distrust number or a later one.
  func versions(since distrust: UInt64) -> [NameMark: UInt64] {
    users.withLock { $0.filter { $0.value.distrust >= distrust }.mapValues(\.version) }
  }
}
