import OneTimePassword

/// A packet that is to be answered.
struct Job: Sendable {
  let connection: Connection
  let peer: Peer
  let request: Secret
}

/// The packets of one socket that wait for a worker, and for whom workers are busy.
///
/// Whoever is done with a packet asks for the next one before it sleeps: so a packet that could not
/// be taken, because its user had all workers that he may have, is never forgotten.
struct PacketQueue: Sendable {
  private let limits: Limits
  private var jobs: [Job] = []
  private var working: [Job] = []
  /// No more packets will come.
  var isClosed = false

  init(_ limits: Limits) { self.limits = limits }

  /// The job that had to go is given back, to be closed outside of any lock.
  mutating func add(_ job: Job) -> Job? {
    jobs.append(job)
    guard jobs.count > limits.packets else { return nil }
    return crowdedOut(of: jobs.lazy.map { $0.peer.realUser }).map { jobs.remove(at: $0) }
  }

  /// The first whose user may have one more worker. It is to be told to `finish`.
  mutating func next() -> Job? {
    let busy = working.reduce(into: [UInt32: Int]()) { $0[$1.peer.realUser, default: 0] += 1 }
    let ofUsers = working.count - busy[0, default: 0]
    let index = jobs.firstIndex { job in
      let user = job.peer.realUser
      return user == 0
        || busy[user, default: 0] < limits.workersOfOne && ofUsers < limits.workersOfUsers
    }
    guard let index else { return nil }
    let job = jobs.remove(at: index)
    working.append(job)
    return job
  }

  mutating func finish(_ job: Job) {
    working.removeAll { $0.connection === job.connection }
  }

  /// Whether one of them is worked on whose caller waits for its end.
  var hasBegun: Bool { working.contains { $0.connection.hasBegun } }

  var isEmpty: Bool { jobs.isEmpty }
}
