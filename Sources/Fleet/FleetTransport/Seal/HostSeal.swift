import OneTimePassword
import SallyportCore
package import SallyportSupport

/// The seals of a host: its keys, and whether the verifiers answer nothing else of it. From its
/// file, where it is kept from then on. Any thread may ask.
///
/// As bytes of the file: form (1 byte, 1), 1 where only what is sealed counts, else 0, the SHA-256
/// of the public key that the keys belong to (32), and those as `SealKeys` has them, without the
/// version.
package final class HostSeal: Sendable {
  /// Of the service's own directory, which it can write.
  package static let path = "/var/lib/sallyport/fleet.seal"
  /// What to do about one that cannot be used.
  package static let mended =
    "invite this host again on a verifier, then sallyport fleet leave --force, sallyport fleet join"
  private static let form: UInt8 = 1
  private static let longest = 2 + Pin.length + SealKeys.longest

  fileprivate struct State: Sendable {
    var keys: SealKeys?
    /// Nothing counts that is not sealed.
    var isOnly = false
    /// The verifiers have other keys for this host.
    var isBehind = false
    /// The file lacks something of it.
    var isUnsaved = false
    /// Why the file could not be written; and whether that was told.
    var fault: SystemError?
    var isTold = false
  }

  let host: Pin
  /// nil: kept in memory alone.
  private let path: String?
  private let state: Locked<State>

  /// `keys`: nil for none. `isOnly`: believes nothing that is not sealed.
  package init(_ host: Pin, _ keys: SealKeys? = nil, isOnly: Bool = false, at path: String? = nil) {
    (self.host, self.path) = (host, path)
    state = Locked(State(keys: keys, isOnly: isOnly))
  }

  /// From the file at `path`; without keys where there is none, or one of another key of this
  /// machine.
  package static func read(at path: String = path, of host: Pin) throws(PrivateFile.Fault)
    -> HostSeal
  {
    let none = HostSeal(host, at: path)
    let whole: Secret
    do throws(PrivateFile.Fault) {
      whole = try PrivateFile.read(path, upTo: longest)
    } catch {
      if error == .absent { return none }
      throw error
    }
    var fields = Fields(reading: whole)
    fields.constant(form)
    let isOnly = fields.bit(nil)
    let pin = fields.bytes(nil, Pin.length)
    guard let keys = SealKeys.pass(nil, &fields), fields.isWhole else { throw .damaged }
    return pin == host.bytes ? HostSeal(host, keys, isOnly: isOnly, at: path) : none
  }

  /// nil where memory is short.
  private static func contents(_ keys: SealKeys, of host: Pin, isOnly: Bool) -> Secret? {
    var fields = Fields(writing: longest)
    fields.constant(form)
    _ = fields.bit(isOnly)
    _ = fields.bytes(host.bytes, Pin.length)
    return SealKeys.pass(keys, &fields).flatMap { _ in fields.written }
  }

  package var keys: SealKeys? { state.withLock { $0.keys } }
  package var isOnly: Bool { state.withLock { $0.isOnly } }
  /// Whether there are keys to be fetched.
  var isBehind: Bool { state.withLock { $0.isBehind } }

  // MARK: what verifiers say

  /// With a sealed answer.
  func note(_ marks: SealedFrame.Marks) {
    state.withLock { state in
      if marks.contains(.newer) { state.isBehind = true }
      if marks.contains(.onlySealed), !state.isOnly {
        (state.isOnly, state.isUnsaved) = (true, true)
      }
    }
  }

  /// One that can seal does not have this host's keys. Where the host has some, it takes others
  /// from a sealed answer alone: else somebody between the two could give it his own.
  func noteOthers() { state.withLock { $0.isBehind = $0.isBehind || $0.keys == nil } }

  /// Keys of a verifier. They are in the file before they are used: who has told the fleet by their
  /// use that it has them has them still after its power was cut. false: they are not, or nothing
  /// can be sealed here.
  package func take(_ keys: SealKeys) -> Bool {
    guard SIV.isThere else { return false }
    if self.keys?.name != keys.name, !write(keys, isOnly: isOnly) { return false }
    state.withLock { ($0.keys, $0.isBehind) = (keys, false) }
    return true
  }

  /// Writes down what was noted; false where it cannot be yet.
  func save() -> Bool {
    let (keys, isOnly, isUnsaved) = state.withLock { ($0.keys, $0.isOnly, $0.isUnsaved) }
    guard isUnsaved, let keys else { return true }
    guard write(keys, isOnly: isOnly) else { return false }
    state.withLock { $0.isUnsaved = false }
    return true
  }

  private func write(_ keys: SealKeys, isOnly: Bool) -> Bool {
    guard let path else { return true }
    guard let contents = Self.contents(keys, of: host, isOnly: isOnly) else { return false }
    do throws(SystemError) {
      try replaceFile(path, contents)
      state.withLock { ($0.fault, $0.isTold) = (nil, false) }
      return true
    } catch {
      state.withLock { [error] in $0.fault = error }
      return false
    }
  }

  /// What is to be logged once, where the file cannot be written.
  func complaint() -> String? {
    let fault = state.withLock { state -> SystemError? in
      defer { state.isTold = state.fault != nil }
      return state.isTold ? nil : state.fault
    }
    return fault.map {
      "\(path ?? ""): \(errnoText($0.number)): new keys of the verifiers are not taken"
    }
  }
}
