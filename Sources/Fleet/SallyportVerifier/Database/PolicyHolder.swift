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
    var used: Secret?
    var complaint = ""
    /// The key that seals the file; nil: not known.
    var keptUnder: UInt32?
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
    var found: StoredPolicy?
    if let path, let content = try? PrivateFile.read(path, upTo: 2 * StoredPolicy.longest) {
      found = StoredPolicy(file: content.bytes(in: 0..<content.count), under: key)
    }
    state = Locked(State(newest: found, used: found.flatMap { Secret($0.text) }))
  }

  package var newest: StoredPolicy? { state.withLock { $0.newest } }

  /// nil: the fleet has none yet.
  var used: Secret? { state.withLock { $0.used } }

  /// What the verifiers say of it in their rows: the serial, or `file` and a digest of theirs; and
  /// how many keys of a policy this version knows.
  package var told: [UInt8] {
    let name = newest.map { Array(String($0.serial).utf8) } ?? Array("file:".utf8) + fileDigest
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
      if flaw == nil || state.used == nil { state.used = Secret(new.text) }
    }
    return flaw
  }

  /// On disk before this returns; gives what is wrong, if it cannot be.
  func keep(_ new: StoredPolicy) -> String? {
    guard let path else { return nil }
    guard let file = try? new.file(under: key) else { return "\(path): libcrypto failed" }
    do throws(SystemError) {
      try replaceFile(path, file)
      state.withLock { $0.keptUnder = key.id }
      return nil
    } catch {
      return "\(path): \(errnoDescription(error.number))"
    }
  }

  /// Whether the file is to be written again, since the fleet has another key.
  var isLate: Bool { path != nil && state.withLock { $0.newest != nil && $0.keptUnder != key.id } }

  /// Whether that was not the last thing to say; "" is nothing.
  func isNews(_ complaint: String) -> Bool {
    state.withLock { state in
      defer { state.complaint = complaint }
      return state.complaint != complaint && !complaint.isEmpty
    }
  }
}
