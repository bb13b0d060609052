import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// The policy that a verifier goes by: the fleet's, as soon as one is stored; before, its own file.
package final class PolicyHolder: Sendable {
  private struct State: Sendable {
    /// The newest that was seen.
    var newest: StoredPolicy?
    /// The newest of them that this version can read, or else the newest.
    var used: StoredPolicy?
    /// Of it.
    var text: Secret?
    var complaint = ""
    /// The key that seals the file; nil: not known, or it could not be written.
    var keptUnder: UInt32?
    var hasComplained = false
    /// What is wrong with the file that was there; nil: nothing, or it was said.
    var damage: String?

    mutating func use(_ new: StoredPolicy?) {
      (used, text) = (new, new.flatMap { Secret($0.text) })
    }
  }

  private let state: Locked<State>
  private let key: FleetKey
  /// Its file; nil: it is not kept.
  private let path: String?
  private let conf: [UInt8]
  private let store: Store

  /// `directory`: of this verifier's files; nil: none. `isKept`: whether it is written there, too.
  init(in directory: String?, key: FleetKey, isKept: Bool) {
    let path = directory.map { $0 + "/policy" }
    conf = Array(((directory ?? "/var/empty") + "/sallyport.conf").utf8)
    store = Store(root: Array((directory ?? "/var/empty").utf8), owner: .effectiveUser)
    (self.key, self.path) = (key, isKept ? path : nil)
    var state = State()
    do throws(PrivateFile.Fault) {
      state.newest = try path.map { (path) throws(PrivateFile.Fault) in
        try Self.read(path, under: key)
      }
    } catch {
      let text = error == .damaged ? "damaged, or not sealed with the fleet's key" : error.text
      if error != .absent, let path { state.damage = "\(path): \(text)" }
    }
    state.use(state.newest)
    self.state = Locked(state)
  }

  private static func read(_ path: String, under key: FleetKey) throws(PrivateFile.Fault)
    -> StoredPolicy
  {
    let content = try PrivateFile.read(path, upTo: 2 * StoredPolicy.longest)
    let found = StoredPolicy(file: content.bytes(in: 0..<content.count), under: key)
    guard let found else { throw .damaged }
    return found
  }

  package var newest: StoredPolicy? { state.withLock { $0.newest } }

  /// Its text; nil: the fleet has none yet.
  var used: Secret? { state.withLock { $0.text } }

  /// What was wrong with the file when this began, once.
  func takeDamage() -> String? {
    state.withLock { state in
      defer { state.damage = nil }
      return state.damage
    }
  }

  /// What the verifiers say of it in their rows: the serial of what they go by, or `file` and a
  /// digest of theirs; and how many keys of a policy this version knows.
  package var told: [UInt8] {
    let used = state.withLock { $0.used }
    let name = used.map { Array(String($0.serial).utf8) } ?? Array("file:".utf8) + fileDigest
    return name + Array(" \(PolicyKey.allCases.count)".utf8)
  }

  private var fileDigest: [UInt8] {
    guard let text = try? store.policyText(at: conf, optional: true),
      let digest = try? SHA256.digest(text.bytes(in: 0..<text.count))
    else { return Array("none".utf8) }
    return hexadecimal(Array(digest.prefix(8)))
  }

  /// Goes by it from now on; gives what is wrong with it, if this version cannot read it: then what
  /// could be read before holds.
  func take(_ new: StoredPolicy) -> String? {
    let flaw = StoredPolicy.flaw(of: new.text, named: "policy \(new.serial)")
    state.withLock { state in
      state.newest = new
      if flaw == nil || state.used == nil { state.use(new) }
    }
    return flaw
  }

  /// On disk before this returns, what is used; gives what is wrong, if it cannot be: once, until
  /// it can.
  func keep() -> String? {
    guard let path, let used = state.withLock({ $0.used }) else { return nil }
    let id = key.id
    let fault = write(used, to: path)
    return state.withLock { state in
      state.keptUnder = fault == nil ? id : nil
      defer { state.hasComplained = fault != nil }
      return state.hasComplained ? nil : fault
    }
  }

  private func write(_ policy: StoredPolicy, to path: String) -> String? {
    guard let file = try? policy.file(under: key) else { return "\(path): libcrypto failed" }
    do throws(SystemError) {
      try replaceFile(path, file)
      return nil
    } catch {
      return "\(path): \(errnoDescription(error.number))"
    }
  }

  /// Whether the file is to be written again: it could not be, or the fleet has another key.
  var isLate: Bool { path != nil && state.withLock { $0.used != nil && $0.keptUnder != key.id } }

  /// Whether that was not the last thing to say; "" is nothing.
  func isNews(_ complaint: String) -> Bool {
    state.withLock { state in
      defer { state.complaint = complaint }
      return state.complaint != complaint && !complaint.isEmpty
    }
  }
}
