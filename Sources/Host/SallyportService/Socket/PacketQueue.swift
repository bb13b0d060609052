import OneTimePassword

/// A packet that is to be answered.
struct Job: Sendable {
  let connection: Connection
  let peer: Peer
  let request: Secret
}

/// The packets of one socket that wait for a worker, and those that workers are busy with.
///
/// A worker that is done with a packet asks for the next one before it sleeps: so a packet that
/// could not be taken, because its share had all workers that it may have, is never forgotten.
struct PacketQueue: Sendable {
  private let limits: Limits
  private let shares: Shares
  private var waiting: [Job] = []
  private var working: [Job] = []
  /// No more packets will come.
  var isClosed = false

  init(_ limits: Limits, _ shares: Shares) { (self.limits, self.shares) = (limits, shares) }

  /// The job that had to go is given back, to be closed outside of any lock.
  mutating func add(_ job: Job) -> Job? {
    waiting.append(job)
    guard waiting.count > limits.packets else { return nil }
    return crowdedOut(of: waiting.map(share)).map { waiting.remove(at: $0) }
  }

  /// The first of the share that has fewest workers, of those that may have one more. It is to be
  /// told to `finish`.
  mutating func next() -> Job? {
    if waiting.isEmpty { return nil }
    let busy = working.reduce(into: [Share: Int]()) { $0[share($1), default: 0] += 1 }
    let ofUsers = working.count - busy[.root, default: 0]
    let open = waiting.enumerated().compactMap { index, job -> (index: Int, workers: Int)? in
      let share = share(job)
      let workers = busy[share, default: 0]
      let isOpen =
        share == .root || workers < limits.workersOfOne && ofUsers < limits.workersOfUsers
      return isOpen ? (index, workers) : nil
    }
    guard let first = open.min(by: { $0.workers < $1.workers }) else { return nil }
    let job = waiting.remove(at: first.index)
    working.append(job)
    return job
  }

  /// As it is now: a worker may have found an account meanwhile, and is no stranger's then.
  private func share(_ job: Job) -> Share { shares.share(of: job.peer) }

  mutating func finish(_ job: Job) {
    working.removeAll { $0.connection === job.connection }
  }

  /// Whether one of them is worked on whose caller waits for its end.
  var hasBegun: Bool { working.contains { $0.connection.hasBegun } }

  var isEmpty: Bool { waiting.isEmpty }
}
