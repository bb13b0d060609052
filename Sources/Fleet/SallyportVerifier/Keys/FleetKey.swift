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
    /// Nothing needs the first one any more: it seals nothing again, whatever the database says.
    var isFirstOver = false
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

  /// The next one, whether it seals or not; nil: there is none.
  var next: SealingKey? { ring.withLock { $0.next } }

  /// The one of before, where the next one seals.
  var former: SealingKey? { ring.withLock { $0.sealsByNext ? $0.first : nil } }

  func derive(_ text: [UInt8]) throws(CryptoError) -> Secret { try present.derive(text) }

  /// Whether nothing needs the first one any more.
  var isFirstOver: Bool { ring.withLock { $0.isFirstOver } }

  /// What is wrong where the row of the fleet is sealed with a key that this verifier does not
  /// have, or that counts no more; nil: it has it.
  func lacks(_ seal: [UInt8]) -> String? {
    guard let id = Self.id(of: seal) else { return nil }
    if ring.withLock({ $0.isFirstOver && $0.first.id == id }) {
      return "its row of the fleet is older than the last change of the fleet's key; if the "
        + "database was restored on purpose, restart this verifier"
    }
    if key(id) != nil { return nil }
    return "the fleet's key has changed, and this verifier lacks the new one: sallyport-verifier "
      + "key take FILE, with a copy that key show printed on another verifier"
  }

  /// From now on the key of this seal, which is the right one of the row of the fleet, seals.
  func follow(_ seal: [UInt8]) {
    let id = Self.id(of: seal)
    ring.withLock {
      if !$0.isFirstOver { $0.sealsByNext = $0.next != nil && $0.next?.id == id }
    }
  }

  /// The right canary of the row of the fleet names the oldest key that is needed.
  func noteOldest(_ canary: [UInt8]) {
    let id = Self.id(of: canary)
    ring.withLock {
      if $0.next != nil, $0.next?.id == id { ($0.sealsByNext, $0.isFirstOver) = (true, true) }
    }
  }
}

// MARK: the files

extension FleetKey {
  /// A file of keys that cannot be used.
  package struct FileFault: Error, Equatable {
    package let path: String
    package let fault: PrivateFile.Fault
    /// Whether it is the one of the next key.
    package let isNext: Bool
  }

  /// Takes the next key, on disk before this returns. Another one that is there stays, as `key.`
  /// and its id: something may be sealed with it.
  func take(next whole: Secret) throws(PrivateFile.Fault) {
    let new = try Self.key(in: whole)
    if key(new.id) != nil { return }
    if let path {
      try PrivateFile.alone(beside: path) { () throws(PrivateFile.Fault) in
        try Self.write(next: whole, new.id, beside: path)
      }
    }
    ring.withLock { $0.next = new }
  }

  private static func write(next whole: Secret, _ id: UInt32, beside path: String)
    throws(PrivateFile.Fault)
  {
    let next = pathOfNext(beside: path)
    let old = try readNext(beside: path)
    // Another process of this directory may have done it.
    if old?.id == id { return }
    do throws(SystemError) {
      // SAFETY: the C strings live for the call.
      if let old, unsafe rename(next, "\(path).\(named(old.id))") != 0 { throw .last }
      try replaceFile(next, whole)
    } catch {
      throw .system("write", errno: error.number)
    }
  }

  /// Beside the file of the key: the next one.
  package static func pathOfNext(beside path: String) -> String { path + ".next" }

  /// From the files at `path`, and beside it where there is a next one: the id, little-endian, and
  /// the key. Each must be the effective user's, and nobody else's to read.
  package static func read(at path: String) throws(FileFault) -> FleetKey {
    let (first, next) = try both(
      at: path, { (path) throws(PrivateFile.Fault) in try readOne(at: path) })
    // The last step of a change was done, and its file not yet gone.
    return FleetKey(first, next?.id == first.id ? nil : next, at: path)
  }

  /// Of the file at `path`, and behind it of the next one where there is one: for a copy.
  package static func contents(at path: String) throws(FileFault) -> Secret {
    let (first, next) = try both(
      at: path, { (path) throws(PrivateFile.Fault) in try PrivateFile.read(path) })
    guard let next else { return first }
    var both = SecretText(capacity: first.count + next.count)
    both.add(first)
    both.add(next)
    guard let both = both.finish() else {
      throw FileFault(path: path, fault: .outOfMemory, isNext: false)
    }
    return both
  }

  /// Of both files; nil where there is no next one.
  private static func both<R>(
    at path: String, _ read: (String) throws(PrivateFile.Fault) -> R
  ) throws(FileFault) -> (R, R?) {
    func one(_ path: String, isNext: Bool) throws(FileFault) -> R {
      do throws(PrivateFile.Fault) { return try read(path) } catch {
        throw FileFault(path: path, fault: error, isNext: isNext)
      }
    }
    let first = try one(path, isNext: false)
    do throws(FileFault) {
      return (first, try one(pathOfNext(beside: path), isNext: true))
    } catch {
      guard error.fault == .absent else { throw error }
      return (first, nil)
    }
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
    if let path {
      try PrivateFile.alone(beside: path) { () throws(PrivateFile.Fault) in
        try Self.endFirst(at: path, before: next.id)
      }
    }
    ring.withLock { $0 = Ring(first: next, next: nil) }
  }

  private static func endFirst(at path: String, before id: UInt32) throws(PrivateFile.Fault) {
    // Another process of this directory may have done it.
    if try readOne(at: path).id == id { return }
    guard try readNext(beside: path)?.id == id else { throw .system("rename", errno: ENOENT) }
    do throws(SystemError) {
      let old = try OpenFile(path, O_WRONLY | O_NOFOLLOW)
      // SAFETY: the C strings live for the call.
      if unsafe rename(pathOfNext(beside: path), path) != 0 { throw .last }
      try syncParent(of: path)
      let number = old.number
      let zeros = [UInt8](repeating: 0, count: fileLength)
      // SAFETY: the buffer lives for the call.
      try unsafe zeros.withBytes { unsafe writeAll($0, to: number) }.get()
      try old.sync()
    } catch {
      throw .system("rename", errno: error.number)
    }
  }

  /// nil where there is none.
  private static func readNext(beside path: String) throws(PrivateFile.Fault) -> SealingKey? {
    do throws(PrivateFile.Fault) {
      return try readOne(at: pathOfNext(beside: path))
    } catch {
      if error == .absent { return nil }
      throw error
    }
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

  /// As it is shown: eight digits.
  package static func named(_ id: UInt32) -> String {
    let digits = String(id, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}

extension SealingKey {
  /// As its file has it; nil if memory is short.
  var whole: Secret? {
    var text = SecretText(capacity: FleetKey.fileLength)
    for byte in FleetKey.bytes(of: id) { text.put(byte) }
    text.add(secret)
    return text.finish()
  }
}
