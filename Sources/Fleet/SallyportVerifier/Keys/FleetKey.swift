import CSealing
import Glibc
package import OneTimePassword
import SallyportCore
package import SallyportSupport
import SallyportSystem

/// One key, from which the key of each user's columns is derived (docs/fleet-format.md).
struct SealingKey: Sendable {
  /// Precedes everything that is sealed with it.
  let id: UInt32
  /// `FleetKey.length` bytes.
  let secret: Secret

  /// HMAC-SHA-256 of the text under this key.
  func derive(_ text: [UInt8]) throws(CryptoError) -> Secret {
    guard let derived = Secret(count: 32) else { throw .outOfMemory }
    // SAFETY: the buffers live for the call, and the last has the 32 bytes that are written.
    let done = unsafe secret.withBytes { key in
      unsafe text.withUnsafeBytes { text in
        unsafe derived.withMutableBytes { code in
          guard let key = unsafe (key.baseAddress.map { unsafe ($0, key.count) }),
            let text = unsafe (text.baseAddress.map { unsafe ($0, text.count) }),
            let code = code.baseAddress
          else { return false }
          return unsafe otp_hmac_sha256(key.0, key.1, text.0, text.1, code) == 1
        }
      }
    }
    guard done else { throw .failed }
    return derived
  }
}

/// The key of a fleet, as one verifier has it: the key that it seals with, and, while the fleet
/// changes its key, the other one. What was sealed is opened with the key that it names.
///
/// Which of the two seals, the row of the fleet says by its own seal.
package final class FleetKey: Sendable {
  private struct Ring: Sendable {
    /// Of the file: where the fleet changes its key, the one of before.
    var first: SealingKey
    /// Of the file `.next`.
    var next: SealingKey?
    var sealsByNext = false
  }

  package static let length = 32
  static let fileLength = 4 + length

  private let ring: Locked<Ring>
  /// nil: kept in memory alone, as for tests.
  private let path: String?

  /// `secret` has `length` bytes.
  package convenience init(id: UInt32, _ secret: Secret) {
    self.init(SealingKey(id: id, secret: secret), nil, at: nil)
  }

  private init(_ first: SealingKey, _ next: SealingKey?, at path: String?) {
    (ring, self.path) = (Locked(Ring(first: first, next: next)), path)
  }

  /// The one that seals.
  var present: SealingKey {
    ring.withLock { $0.sealsByNext ? $0.next ?? $0.first : $0.first }
  }

  package var id: UInt32 { present.id }

  /// Of the first one, and of the next one where there is one.
  package var ids: [UInt32] { ring.withLock { [$0.first.id] + ($0.next.map { [$0.id] } ?? []) } }

  /// nil where this verifier does not have it.
  func key(_ id: UInt32) -> SealingKey? {
    ring.withLock { $0.first.id == id ? $0.first : $0.next?.id == id ? $0.next : nil }
  }

  func derive(_ text: [UInt8]) throws(CryptoError) -> Secret { try present.derive(text) }

  /// Whether the next one seals.
  var isSealedByNext: Bool { ring.withLock { $0.sealsByNext } }

  /// What is wrong where the row of the fleet is sealed with a key that this verifier does not
  /// have; nil: it has it.
  func lacks(_ seal: [UInt8]) -> String? {
    guard let id = Self.id(of: seal), key(id) == nil else { return nil }
    return "the fleet's key has changed, and this verifier lacks the new one: sallyport-verifier "
      + "key take FILE, with a copy that key show printed on another verifier"
  }

  /// From now on the key of this seal, which is the right one of the row of the fleet, seals.
  func follow(_ seal: [UInt8]) {
    let id = Self.id(of: seal)
    ring.withLock { $0.sealsByNext = $0.next != nil && $0.next?.id == id }
  }
}

// MARK: the files

extension FleetKey {
  /// Takes the next key, on disk before this returns. One that is there, and with which nothing was
  /// sealed, it replaces: `isUsed` for another one.
  func take(next whole: Secret, isUsed: Bool) throws(PrivateFile.Fault) {
    let new = try Self.key(in: whole)
    let (first, old) = ring.withLock { ($0.first.id, $0.next) }
    if new.id == first || new.id == old?.id { return }
    if old != nil, isUsed { throw .exists }
    if let path {
      do throws(SystemError) {
        try replaceFile(Self.pathOfNext(beside: path), whole)
      } catch {
        throw .system("write", errno: error.number)
      }
    }
    ring.withLock { $0.next = new }
  }
  /// Beside the file of the key: the next one.
  package static func pathOfNext(beside path: String) -> String { path + ".next" }

  /// From the files at `path`, and beside it where there is a next one: the id, little-endian, and
  /// the key. Each must be the effective user's, and nobody else's to read.
  package static func read(at path: String) throws(PrivateFile.Fault) -> FleetKey {
    let first = try readOne(at: path)
    var next: SealingKey?
    do throws(PrivateFile.Fault) {
      next = try readOne(at: pathOfNext(beside: path))
    } catch {
      if error != .absent { throw error }
    }
    // The last step of a change was done, and its file not yet gone.
    if next?.id == first.id { next = nil }
    return FleetKey(first, next, at: path)
  }

  /// Of the file at `path`, and behind it of the next one where there is one: for a copy.
  package static func contents(at path: String) throws(PrivateFile.Fault) -> Secret {
    let first = try PrivateFile.read(path)
    var next: Secret?
    do throws(PrivateFile.Fault) {
      next = try PrivateFile.read(pathOfNext(beside: path))
    } catch {
      if error != .absent { throw error }
    }
    guard let next else { return first }
    var both = SecretText(capacity: first.count + next.count)
    both.add(first)
    both.add(next)
    guard let both = both.finish() else { throw .outOfMemory }
    return both
  }

  /// Of such contents: each file, and where it belongs.
  package static func files(_ contents: Secret, at path: String) throws(PrivateFile.Fault)
    -> [(String, Secret)]
  {
    guard [fileLength, 2 * fileLength].contains(contents.count) else { throw .damaged }
    let paths = [path, pathOfNext(beside: path)].prefix(contents.count / fileLength)
    var files: [(String, Secret)] = []
    for (place, path) in paths.enumerated() {
      let start = place * fileLength
      guard let one = contents.slice(start..<start + fileLength) else { throw .outOfMemory }
      files.append((path, one))
    }
    return files
  }

  /// The next key takes the place of the first one, whose file is overwritten; on disk before this
  /// returns.
  func endFirst() throws(PrivateFile.Fault) {
    guard let next = ring.withLock({ $0.next }) else { return }
    // Another verifier of this directory may have done it.
    if let path, try Self.readOne(at: path).id != next.id {
      do throws(SystemError) {
        let old = try OpenFile(path, O_WRONLY | O_NOFOLLOW)
        // SAFETY: the C strings live for the call.
        if unsafe rename(Self.pathOfNext(beside: path), path) != 0 { throw .last }
        try syncParent(of: path)
        let number = old.number
        let zeros = [UInt8](repeating: 0, count: Self.fileLength)
        // SAFETY: the buffer lives for the call.
        try unsafe zeros.withBytes { unsafe writeAll($0, to: number) }.get()
        try old.sync()
      } catch {
        throw .system("rename", errno: error.number)
      }
    }
    ring.withLock { $0 = Ring(first: next, next: nil) }
  }

  private static func readOne(at path: String) throws(PrivateFile.Fault) -> SealingKey {
    try key(in: try PrivateFile.read(path))
  }

  /// From the bytes of such a file.
  static func key(in whole: Secret) throws(PrivateFile.Fault) -> SealingKey {
    guard whole.count == fileLength else { throw .damaged }
    guard let key = whole.slice(4..<fileLength) else { throw .outOfMemory }
    return SealingKey(
      id: UInt32(truncatingIfNeeded: number(whole.bytes(in: 0..<4))), secret: key)
  }

  /// A new key, in a new file of mode 0600 at `path`, on disk before this returns.
  package static func make(at path: String) throws(PrivateFile.Fault) {
    guard let whole = try? Random.secret(count: fileLength) else { throw .outOfMemory }
    try PrivateFile.make(path, whole)
  }
}
