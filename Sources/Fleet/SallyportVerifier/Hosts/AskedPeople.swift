import CService
import FleetTransport
import SallyportSupport

/// About which enrolled people each host has asked who have not logged in there since, as this
/// verifier knows it.
///
/// A host learns who is enrolled from the logins of its own people. One that asks about many others
/// is told the same of everybody from then on, so that it learns no more.
final class AskedPeople: Sendable {
  /// How many a host may ask about in a day, beside as many as have logged in there.
  static let usual = 100
  /// Nanoseconds for which one that was asked about counts, and one who has logged in is known.
  static let (day, week): (UInt64, UInt64) = (86_400_000_000_000, 604_800_000_000_000)
  /// How many are kept in memory of all hosts together, twice.
  private static let most = 200_000

  /// By a hash with a secret of this process.
  fileprivate typealias Person = Int

  fileprivate struct Books: Sendable {
    /// When the first question was, of those who have not logged in since.
    var asked: [Pin: [Person: UInt64]] = [:]
    /// Who has logged in where, and how many on each host: lately, and before that.
    var (known, former): (Set<Person>, Set<Person>) = ([], [])
    var (counts, formerCounts): ([Pin: Int], [Pin: Int]) = ([:], [:])
    var since = sys_monotonic()
    /// The hosts of which it was said.
    var told: Set<Pin> = []
  }

  private let books = Locked(Books())

  /// Whether the host may learn of nobody else. What it has learned it may be told again.
  func isHidden(_ name: [UInt8], from pin: Pin, at now: UInt64 = sys_monotonic()) -> Bool {
    let person = Self.person(name, pin)
    return books.withLock { books in
      if books.isKnown(person) || books.asked[pin]?[person] != nil { return false }
      return books.isFull(pin, at: now)
    }
  }

  /// The host learns that this one is enrolled. Whether it learns of nobody else from now on, and
  /// nobody has been told.
  func note(_ name: [UInt8], from pin: Pin, at now: UInt64 = sys_monotonic()) -> Bool {
    let person = Self.person(name, pin)
    return books.withLock { books in
      if books.isKnown(person) || books.asked[pin]?[person] != nil { return false }
      // One that is not kept from learning more.
      if books.isFull(pin, at: now) { return false }
      books.asked[pin, default: [:]][person] = now
      return books.isFull(pin, at: now) && books.told.insert(pin).inserted
    }
  }

  /// He was let in there.
  func know(_ name: [UInt8], on pin: Pin, at now: UInt64 = sys_monotonic()) {
    let person = Self.person(name, pin)
    books.withLock { books in
      if books.asked[pin]?.removeValue(forKey: person) != nil, !books.isFull(pin, at: now) {
        books.told.remove(pin)
      }
      if books.known.count >= Self.most || now &- books.since > Self.week {
        (books.former, books.formerCounts) = (books.known, books.counts)
        (books.known, books.counts, books.since) = ([], [:], now)
      }
      if books.known.insert(person).inserted { books.counts[pin, default: 0] += 1 }
    }
  }

  private static func person(_ name: [UInt8], _ pin: Pin) -> Person {
    var hasher = Hasher()
    hasher.combine(pin)
    hasher.combine(name)
    return hasher.finalize()
  }
}

extension AskedPeople.Books {
  fileprivate func isKnown(_ person: Int) -> Bool {
    known.contains(person) || former.contains(person)
  }

  /// Those of more than a day ago go first.
  fileprivate mutating func isFull(_ pin: Pin, at now: UInt64) -> Bool {
    let most = AskedPeople.usual + max(counts[pin] ?? 0, formerCounts[pin] ?? 0)
    guard let there = asked[pin], there.count >= most else { return false }
    guard let oldest = there.values.min(), now &- oldest > AskedPeople.day else { return true }
    let left = there.filter { now &- $0.value <= AskedPeople.day }
    asked[pin] = left.isEmpty ? nil : left
    if left.count < most { told.remove(pin) }
    return left.count >= most
  }
}
