package import FleetTransport
import SallyportCore
import SallyportLogin
package import SallyportSupport

/// Why this machine cannot ask its fleet.
package enum MembershipFault: Error {
  case notAMember(path: String)
  case file(FleetFileFault)
  case key(PrivateFile.Fault, path: String)
  case seal(PrivateFile.Fault, path: String)

  /// One sentence, with what to do.
  package var text: String {
    switch self {
    case .notAMember(let path):
      "\(path): does not exist: this machine is in no fleet (sallyport fleet join)"
    case .file(let fault): fault.text
    case .key(let fault, let path): "\(path): \(fault.text)"
    case .seal(let fault, let path): "\(path): \(fault.text): \(HostSeal.mended)"
    }
  }

  var line: LogLine {
    var line = LogLine("")
    line.add(escaped(Array(text.utf8), limit: 400))
    return line
  }
}

/// This machine's membership in its fleet: the files that `sallyport fleet join` makes and `leave`
/// removes.
package final class Membership: Sendable {
  private let directory: String
  /// Of the file of its seal.
  private let seal: String
  private let kept = Locked<Kept?>(nil)
  private let hooks = Locked(Hooks())

  private struct Hooks: Sendable {
    var reconnected: (@Sendable () -> Void)?
    var beginning: Beginning?
  }

  private struct Kept {
    let stamps: [FileStamp?]
    let pool: VerifierPool
  }

  package init(in directory: String = FleetFile.directory, seal: String = HostSeal.path) {
    (self.directory, self.seal) = (directory, seal)
  }

  private var files: [String] {
    [FleetFile.name, FleetFile.keyName].map { directory + "/" + $0 } + [seal]
  }

  /// The connection to the verifiers that the files name now.
  package func verifiers() throws(MembershipFault) -> any FleetVerifiers {
    let now = files.map { FileStamp(of: $0) }
    if let kept = kept.withLock({ $0 }), kept.stamps == now { return kept.pool }
    let pool: VerifierPool
    do throws(MembershipFault) {
      let (file, key) = (try file(), try key())
      pool = VerifierPool(file, key, seal: try seal(of: key.pin)) { [hooks] ping in
        hooks.withLock { $0.beginning }?(ping) ?? true
      }
    } catch {
      keep(nil)
      throw error
    }
    // There is no seal before the first one was fetched.
    guard !now.prefix(2).contains(nil) else { return pool }
    keep(Kept(stamps: now, pool: pool))
    pool.startKeeper { [hooks] in hooks.withLock { $0.reconnected }?() }
    return pool
  }

  /// Called when a verifier answers again after none could be asked.
  func onReconnection(_ body: @escaping @Sendable () -> Void) {
    hooks.withLock { $0.reconnected = body }
  }

  /// Called on each connection before the first question of a login.
  func onConnection(_ body: @escaping Beginning) { hooks.withLock { $0.beginning = body } }

  private func keep(_ new: Kept?) {
    let old = kept.withLock { kept -> Kept? in
      defer { kept = new }
      return kept
    }
    old?.pool.close()
  }

  private func file() throws(MembershipFault) -> FleetFile {
    try rethrow(
      { () throws(FleetFileFault) in try FleetFile.read(in: directory) },
      as: {
        $0.isAbsent ? MembershipFault.notAMember(path: $0.path) : .file($0)
      })
  }

  private func key() throws(MembershipFault) -> Identity {
    let path = directory + "/" + FleetFile.keyName
    return try rethrow(
      { () throws(PrivateFile.Fault) in try Identity.read(at: path) },
      as: {
        MembershipFault.key($0, path: path)
      })
  }

  private func seal(of pin: Pin) throws(MembershipFault) -> HostSeal {
    try rethrow(
      { () throws(PrivateFile.Fault) in try HostSeal.read(at: seal, of: pin) },
      as: {
        MembershipFault.seal($0, path: seal)
      })
  }
}
