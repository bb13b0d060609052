import OneTimePassword
import SallyportCore

/// What the keeper of a reserve is to do, and what it knows of the verifiers.
struct SyncQueue: Sendable {
  /// More than wait at any time, but for a flood of logins: those are fetched at their next one.
  static let mostFetches = 1024
  private static let minute: UInt64 = 60_000_000_000

  /// Who has logged in, in the order of it.
  var fetches: [UserName] = []
  /// When somebody was fetched, in nanoseconds of CLOCK_MONOTONIC; those of the last minute.
  var fetched: [[UInt8]: UInt64] = [:]
  /// Whether a verifier could not be asked since the reserve was confirmed as a whole.
  var wasAway = true
  /// When that was, in nanoseconds of CLOCK_MONOTONIC.
  var confirmed: UInt64?
  /// There is a thread.
  var isRunning = false
  /// The thread has been woken, and has not looked since.
  var isRung = false
  var isOver = false
  /// The last complaint, and when it was made.
  var complaint: ([UInt8], UInt64)?

  func hasFetched(_ name: UserName, at now: UInt64) -> Bool {
    fetched[name.bytes].map { now - $0 < Self.minute } ?? false
  }

  mutating func note(_ name: UserName, at now: UInt64) {
    if fetched.count > 16 * Self.mostFetches {
      fetched = fetched.filter { now - $0.value < Self.minute }
      if fetched.count > 8 * Self.mostFetches { fetched = [:] }
    }
    fetched[name.bytes] = now
  }
}
