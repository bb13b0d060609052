import FleetTransport
import OneTimePassword
import SallyportCore

/// What `ReserveSync` has to do, and what it knows of the verifiers.
struct SyncQueue: Sendable {
  /// Enough except for a flood of logins: the users left out are fetched at their next login.
  static let mostFetches = 1024
  private static let minute: UInt64 = 60_000_000_000

  /// Users who have logged in, in that order.
  var fetches: [UserName] = []
  /// When somebody was fetched, in nanoseconds of CLOCK_MONOTONIC; those of the last minute.
  var fetched: [[UInt8]: UInt64] = [:]
  /// Whether a verifier could not be asked since the reserve was confirmed as a whole.
  var wasAway = true
  /// When that was, in nanoseconds of CLOCK_MONOTONIC.
  var confirmed: UInt64?
  /// The fleet has this host hold nothing.
  var rests = false
  /// Which start this is has to be told again.
  var mustTell = true
  /// The last mark of a verifier, empty for none; nil: that on the disk was not read yet.
  var mark: [UInt8]?
  /// When it was written to the disk, in nanoseconds of CLOCK_MONOTONIC; nil: not by this start.
  var marked: UInt64?
  /// How often in turn no question was answered.
  var misses: UInt64 = 0
  /// There is a thread.
  var isRunning = false
  /// The thread was woken, and has not read the queue since.
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

extension ReserveSync {
  /// How often it does what. From each time it waits by chance up to a quarter less or more: what
  /// happens to many hosts at one moment does not have them all ask at one.
  package struct Pace: Sendable {
    /// Seconds from one confirmation of the whole reserve to the next.
    package var confirming: UInt64 = 600
    /// Milliseconds from one question to the next where none was answered; twice as many with each
    /// more, up to `pinging`.
    package var probing: UInt64 = 1000
    /// The same while there is nothing to ask: a cut of which nobody else tells is found by it.
    package var pinging: UInt64 = 4000
    /// How long an answer may take.
    package var patience: UInt64 = 3000

    package init() {}
  }

  /// What became of a question.
  enum Progress {
    case done
    /// Nobody answers, or not so that it could be understood.
    case away
    /// Somebody answers, but nothing that could be understood.
    case garbled
    /// No verifier knows this host: the reserve is kept as it is.
    case stranger
    /// This host was revoked.
    case revoked

    init(_ fault: TransportFault) {
      switch fault {
      case .away, .unknown, .unpinned, .unsealed: self = .away
      case .stranger: self = .stranger
      case .revoked: self = .revoked
      }
    }
  }
}
