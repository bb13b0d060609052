import Glibc
import SallyportCore
import SallyportLogin
package import SallyportSupport

/// What a verifier counts of itself since it was started.
final class VerifierMetrics: Sendable {
  /// Upper bounds of how long an answer took, in milliseconds.
  private static let bounds: [UInt64] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]

  private struct Counts: Sendable {
    var outcomes: [String: UInt64] = [:]
    /// For each bound, how many took no longer.
    var within = [UInt64](repeating: 0, count: VerifierMetrics.bounds.count)
    var answers: UInt64 = 0
    var nanoseconds: UInt64 = 0
    var unknown: UInt64 = 0
    var rollbacks: UInt64 = 0
    var hidden: UInt64 = 0
    /// In milliseconds; nil: not known yet.
    var offset: Int64?
  }

  private let counts = Locked(Counts())

  /// An answer to a code that was typed. `nanoseconds`: since the question was here.
  func note(_ outcome: String, after nanoseconds: UInt64) {
    counts.withLock { counts in
      counts.outcomes[outcome, default: 0] += 1
      counts.answers += 1
      counts.nanoseconds &+= nanoseconds
      for (index, bound) in VerifierMetrics.bounds.enumerated()
      where nanoseconds <= bound * 1_000_000 {
        counts.within[index] += 1
      }
    }
  }

  /// A save of which it is not known whether it was done.
  func noteUnknown() { counts.withLock { $0.unknown += 1 } }

  /// A row that lacked what this verifier had seen of it.
  func noteRollback() { counts.withLock { $0.rollbacks += 1 } }

  /// A question of a host that has asked about too many people.
  func noteHidden() { counts.withLock { $0.hidden += 1 } }

  /// Of this clock from the database's, in milliseconds.
  func note(offset: Int64) { counts.withLock { $0.offset = offset } }

  /// In Prometheus' text format. `isVerifying`: whether logins can be verified now.
  func text(isVerifying: Bool) -> String {
    let counts = counts.withLock { $0 }
    var metrics = Metrics("sallyport_verifier")
    metrics.add(
      "verifying", .gauge, help: "1 if logins can be verified (database reachable, clock in sync).",
      [("", isVerifying ? "1" : "0")])
    metrics.add(
      "outcomes_total", .counter, help: "Codes by outcome.",
      counts.outcomes.sorted { $0.key < $1.key }.map {
        ("{outcome=\(quoted($0.key))}", "\($0.value)")
      })
    let buckets = zip(VerifierMetrics.bounds, counts.within).map { bound, count in
      ("_bucket{le=\"\(Double(bound) / 1000)\"}", "\(count)")
    }
    metrics.add(
      "answer_seconds", .histogram, help: "How long answers to codes took.",
      buckets + [
        ("_bucket{le=\"+Inf\"}", "\(counts.answers)"),
        ("_sum", "\(Double(counts.nanoseconds) / 1e9)"), ("_count", "\(counts.answers)"),
      ])
    metrics.add(
      "unknown_total", .counter, help: "Saves with an unknown result; their logins were refused.",
      [("", "\(counts.unknown)")])
    metrics.add(
      "floors_broken_total", .counter, help: "Rows older than the last version seen (rollback).",
      [("", "\(counts.rollbacks)")])
    metrics.add(
      "hidden_total", .counter, help: "Questions of hosts that asked about too many people.",
      [("", "\(counts.hidden)")])
    metrics.add(
      "clock_offset_seconds", .gauge, help: "Difference of this clock and the database's.",
      counts.offset.map { [("", "\(Double($0) / 1000)")] } ?? [])
    return metrics.text
  }
}

extension Database {
  /// Writes this verifier's metrics each ten seconds, until the process ends.
  package func writeMetrics(to path: String) throws(ServiceError) {
    try startThread { [self] in keepMetrics(path) }
  }

  /// A function: the optimizer makes a closure that never returns into another.
  @inline(never) private func keepMetrics(_ path: String) {
    var last: Int32 = 0
    while losses >= 0 {
      let number = Metrics.write(meters.text(isVerifying: !isAway), to: path)
      if number != last, number != 0 {
        note(.error, "error: metrics: \(path): \(errnoDescription(number))")
      }
      last = number
      _ = poll(nil, 0, 10_000)
    }
  }
}
