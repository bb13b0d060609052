import CService
import SallyportSupport

/// A share of the service's connections, packets, workers and sessions.
enum Share: Hashable, Sendable {
  /// Without a bound of its own.
  case root
  case user(UInt32)
  /// The sub-uids of an owner whose own uid is not known yet, or is root's, who gives such ranges
  /// to containers.
  case ranges(of: String)
  /// All users together whose account was never found.
  case strangers
}

/// Assigns a share to a peer before it gets anything.
///
/// newuidmap gives one user 65,536 uids. Those of a range of /etc/subuid count as the owner of the
/// range; those of other sources, and unused ones, have one share together. Only a uid whose
/// account was found has a share of its own: nobody can make up many of these. A worker finds
/// accounts later, which makes no room for more: so nobody drives out users who were found before.
package final class Shares: Sendable {
  package static let file = "/etc/subuid"

  /// Nanoseconds until the file is checked again.
  private static let pause: UInt64 = 1_000_000_000
  /// Uids with an account that are remembered, twice: of late, and before that.
  private static let most = 8192

  private struct State {
    var found: Set<UInt32> = []
    var foundBefore: Set<UInt32> = []
    var ranges = SubordinateRanges()
    /// The uids of owners, as far as they are known.
    var owners: [String: UInt32] = [:]
    var isLookingUp = false
    var stamp: FileStamp?
    var looked: UInt64?

    mutating func isFound(_ user: UInt32) -> Bool {
      if found.contains(user) { return true }
      guard foundBefore.contains(user) else { return false }
      note(user)
      return true
    }

    mutating func note(_ user: UInt32) {
      if found.count >= Shares.most { (foundBefore, found) = (found, []) }
      found.insert(user)
    }
  }

  private let path: String
  private let account: @Sendable (UInt32) -> Int32
  private let uid: @Sendable (String) -> UInt32?
  private let state = Locked(State())

  /// `hasAccount`: 1 or 0, or less where it cannot be known; `uid`: of the account of that name.
  package init(
    file path: String = Shares.file,
    hasAccount: @escaping @Sendable (UInt32) -> Int32 = { service_account($0, nil, 0) },
    uid: @escaping @Sendable (String) -> UInt32? = Shares.uid
  ) {
    (self.path, account, self.uid) = (path, hasAccount, uid)
  }

  /// 1 or 0: has this user an account? Less where it cannot be known. It may take its time.
  func hasAccount(_ user: UInt32) -> Int32 {
    let result = account(user)
    if result == 1 { state.withLock { $0.note(user) } }
    return result
  }

  /// Whether it was found to have an account.
  func isFound(_ user: UInt32) -> Bool { state.withLock { $0.isFound(user) } }

  func share(of user: UInt32) -> Share {
    if user == 0 { return .root }
    let (share, names) = state.withLock { state -> (Share, [String]) in
      if state.isFound(user) { return (.user(user), []) }
      let names = read(&state)
      guard let owner = state.ranges.owner(of: user) else { return (.strangers, names) }
      return (state.owners[owner].map { .user($0) } ?? .ranges(of: owner), names)
    }
    if !names.isEmpty { lookUp(names) }
    return share
  }

  /// On root's socket a peer is root, and its real uid that of who started it. He cannot choose
  /// among many: where no uid is root's, as in a user namespace of his, no set-uid program is.
  func share(of peer: Peer) -> Share {
    switch peer.socket {
    case .root: peer.realUser == 0 ? .root : .user(peer.realUser)
    case .everybody: share(of: peer.realUser)
    }
  }

  // MARK: the file

  /// Reads it again where it has changed; the owners that are to be looked up then.
  private func read(_ state: inout State) -> [String] {
    let now = sys_monotonic()
    if let looked = state.looked, now - looked < Shares.pause { return [] }
    state.looked = now
    let seen = FileStamp(of: path)
    guard seen != state.stamp else { return [] }
    state.stamp = seen
    state.ranges = SubordinateRanges(seen == nil ? [] : readFile(path))
    var names: Set<String> = []
    state.owners = state.ranges.numbers
    for name in state.ranges.owners where state.owners[name] == nil { names.insert(name) }
    // A lookup that hangs delays nobody: its ranges have a share of their own meanwhile.
    guard !names.isEmpty, !state.isLookingUp else { return [] }
    state.isLookingUp = true
    return Array(names)
  }

  private func lookUp(_ names: [String]) {
    do throws(ServiceError) {
      try startThread {
        for name in names {
          guard let uid = self.uid(name), uid != 0 else { continue }
          self.state.withLock { $0.owners[name] = uid }
        }
        self.state.withLock { $0.isLookingUp = false }
      }
    } catch {
      state.withLock { $0.isLookingUp = false }
    }
  }

  /// nil where there is none, or that cannot be known.
  package static func uid(of name: String) -> UInt32? {
    var user: UInt32 = 0
    // SAFETY: the C string lives for the call, in which the number is filled.
    return unsafe service_uid(name, &user) == 1 ? user : nil
  }
}

/// The ranges of /etc/subuid: `owner:first:count`, with the name or the uid of the owner.
struct SubordinateRanges: Sendable {
  private struct Range {
    let first: UInt64
    /// The one after the last.
    let end: UInt64
    let owner: String
    /// The greatest of these ends up to here.
    var furthest: UInt64 = 0
  }

  /// By the first.
  private var ranges: [Range] = []

  init(_ bytes: [UInt8] = []) {
    ranges = String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
      let fields = line.split(separator: ":", omittingEmptySubsequences: false)
      guard fields.count == 3, !fields[0].isEmpty, let first = UInt32(fields[1]),
        let count = UInt32(fields[2])
      else { return nil }
      return Range(
        first: UInt64(first), end: UInt64(first) + UInt64(count), owner: String(fields[0]))
    }
    ranges.sort { $0.first < $1.first }
    var furthest: UInt64 = 0
    for index in ranges.indices {
      furthest = max(furthest, ranges[index].end)
      ranges[index].furthest = furthest
    }
  }

  var owners: Set<String> { Set(ranges.map(\.owner)) }

  /// Those that are written as numbers.
  var numbers: [String: UInt32] {
    owners.reduce(into: [:]) { found, owner in
      if let number = UInt32(owner), number != 0 { found[owner] = number }
    }
  }

  /// Of several ranges the one that begins last; of two that begin together nobody's, where they
  /// have different owners: one of them is a copied line.
  func owner(of user: UInt32) -> String? {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].first <= UInt64(user) { low = middle + 1 } else { high = middle }
    }
    while low > 0, ranges[low - 1].furthest > UInt64(user) {
      let found = ranges[low - 1]
      if found.end > UInt64(user) {
        let others = ranges[..<(low - 1)].reversed().prefix { $0.first == found.first }
        return others.contains { $0.end > UInt64(user) && $0.owner != found.owner }
          ? nil : found.owner
      }
      low -= 1
    }
    return nil
  }
}

/// At most a megabyte, and only a file; empty where it cannot be read.
private func readFile(_ path: String) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  // SAFETY: the C string lives for the call, and the buffer has its size.
  let count = unsafe service_read_file(path, &bytes, bytes.count)
  return count > 0 ? Array(bytes.prefix(Int(count))) : []
}
