/// Which codes of the set are used.
package struct BackupCodeState: Equatable, Sendable {
  package let setID: UInt64
  /// Bit n: the n-th code of the set is used.
  package var used: UInt64
  package var lastUse: Use?

  package init(setID: UInt64, used: UInt64, lastUse: Use? = nil) {
    self.setID = setID
    self.used = used
    self.lastUse = lastUse
  }

  /// Marks these codes as used; returns false if one of them was used before.
  mutating func use(_ codes: UInt64, _ use: Use) -> Bool {
    guard codes & used == 0 else { return false }
    used |= codes
    lastUse = use
    return true
  }
}

extension BackupCodeSet {
  /// How many codes of the set are left.
  package func left(_ state: BackupCodeState?) -> Int { unused(from: 0, state) }

  /// How many scratch codes are left.
  package func scratchCodesLeft(_ state: BackupCodeState?) -> Int {
    unused(from: digests.count, state)
  }

  private func unused(from first: Int, _ state: BackupCodeState?) -> Int {
    var (left, used) = (0, state?.setID == id ? state?.used ?? 0 : 0)
    used >>= UInt64(first)
    for _ in first..<count {
      left += used & 1 == 0 ? 1 : 0
      used >>= 1
    }
    return left
  }
}
