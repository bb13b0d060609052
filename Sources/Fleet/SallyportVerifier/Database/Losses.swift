import SallyportSystem

/// The last number that was acknowledged to a worker, and the number of distrust known then.
struct Acknowledged: Equatable, Sendable {
  var n: UInt64
  var distrust: UInt64
}

// How a verifier finds that rows went back in the server that it uses. Each save gives a number
// that only grows, of the table `worker`, and the one that this verifier's own row in `state` has,
// which each beat raises: so it sees the restore of either table in its first save afterwards, of
// any person.
extension Database.Books {
  /// In the place of a worker's number: this verifier's row in `state`.
  static let witness = Int(Int32.max)

  /// Whether nothing is lost by what a save has given. `witness`: as it was known before the save
  /// was sent, since a beat may have raised it meanwhile.
  mutating func acknowledge(_ rows: Rows, to worker: Int, since witness: Acknowledged?) -> Bool {
    if let witness, rows.number(0, 2) ?? 0 < witness.n {
      lose(under: witness.distrust)
      return false
    }
    return rows.number(0, 1).map { acknowledge($0, to: worker) } ?? true
  }

  /// Whether it is above what was acknowledged before.
  mutating func acknowledge(_ n: UInt64, to worker: Int) -> Bool {
    if let before = acknowledged[worker], n <= before.n {
      lose(under: before.distrust)
      return false
    }
    acknowledged[worker] = Acknowledged(n: n, distrust: highest)
    return true
  }

  mutating func lose(under number: UInt64) { lost = max(lost ?? 0, number) }

  /// The highest number of distrust under which something was acknowledged that is not there; nil:
  /// all is.
  func lost(in numbers: [Int: UInt64]) -> UInt64? {
    let gone = acknowledged.filter { numbers[$0.key] ?? 0 < $0.value.n }
    return ([lost] + gone.values.map(\.distrust)).compactMap { $0 }.max()
  }

  /// From now on what the database has is what was acknowledged.
  mutating func believe(_ numbers: [Int: UInt64]) {
    acknowledged = numbers.mapValues { Acknowledged(n: $0, distrust: highest) }
    lost = nil
  }
}

/// The number of a distrust: the time at which it was found, in seconds since 1970, and how many
/// there were, in its lower bits. So it is above each one that was given before, whatever is
/// restored.
enum DistrustNumber {
  /// The bits of the count.
  static let count: UInt64 = 1 << 20 - 1

  /// How often something was lost between these two.
  static func losses(from old: UInt64, to new: UInt64) -> UInt64 {
    guard new > old else { return 0 }
    return new & count > old & count ? new & count - old & count : 1
  }

  /// The one after `highest`.
  static func next(after highest: UInt64, at seconds: Int64) -> UInt64 {
    let most = UInt64(Int64.max)
    let count = min(highest & count + 1, count)
    let time = UInt64(clamping: min(max(seconds, 0), 1 << 40))
    return min(max(highest < most ? highest + 1 : most, time * (Self.count + 1) + count), most)
  }
}
