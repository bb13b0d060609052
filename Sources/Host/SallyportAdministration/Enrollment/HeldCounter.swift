/// A counter of which no code is accepted before a `resync`. What is kept as its last accepted one
/// is its next one and 2⁶³, which no token reaches.
package enum HeldCounter {
  private static let offset: UInt64 = 1 << 63
  /// Beyond any token's.
  package static let most: UInt64 = 1 << 62

  /// `last`: as it is kept.
  package static func isHeld(_ last: UInt64?) -> Bool {
    guard let last else { return false }
    return last >= offset && last - offset < most
  }

  /// `last`: the last accepted counter, nil if there was none.
  static func hold(_ last: UInt64?) -> UInt64 {
    if isHeld(last) { return last ?? offset }
    guard let next = next(after: last), next < most else { return UInt64.max }
    return offset + next
  }

  /// The next counter, also of one that is held; nil after the greatest.
  package static func next(after last: UInt64?) -> UInt64? {
    guard let last else { return 0 }
    if isHeld(last) { return last - offset }
    let (next, isOver) = last.addingReportingOverflow(1)
    return isOver ? nil : next
  }
}
