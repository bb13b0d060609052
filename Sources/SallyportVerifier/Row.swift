import OneTimePassword
import SallyportCore
import SallyportSystem

/// What the database has of a user, opened and checked.
struct Row {
  let document: FleetDocument
  /// nil for a user who is not enrolled.
  var state: LoginState?
  let mark: Mark
  /// Whether something that was saved has been lost.
  let isBehind: Bool
}

/// By which a row is known again: the digest of the enrollment, the version that a save expects,
/// and the one that it writes.
struct Mark: Equatable {
  let digest: [UInt8]
  let version: UInt64
  let next: UInt64

  var bytes: [UInt8] { number(version) + number(next) + digest }

  init(digest: [UInt8], version: UInt64, next: UInt64) {
    (self.digest, self.version, self.next) = (digest, version, next)
  }

  init(_ bytes: [UInt8]) {
    version = number(bytes.prefix(8))
    next = number(bytes.dropFirst(8).prefix(8))
    digest = [UInt8](bytes.dropFirst(16))
  }
}

/// What is wrong with what the database has of a user. Each means that somebody changed it who has
/// not the key, or that a part of it was lost.
enum RowFault: Error, Equatable {
  /// There is nothing, but this verifier has seen something.
  case gone
  case noState
  case sealed(SealFault)
  case unreadable
  /// The enrollment is another user's.
  case otherUser
  /// The state was saved for another enrollment.
  case otherEnrollment
  /// Older than what this verifier has seen, and of a user who is not enrolled by it.
  case behind
  case exhausted
  case crypto(CryptoError)

  var text: StaticString {
    switch self {
    case .gone: "the rows are gone from the database"
    case .noState: "the row of the state is missing"
    case .sealed(.otherKey): "a row is sealed with another key than this verifier's"
    case .sealed(.forged): "a row was changed, or is another user's or an older one"
    case .unreadable: "a row cannot be read"
    case .otherUser: "the enrollment is another user's"
    case .otherEnrollment: "the state was saved for another enrollment than the one that is there"
    case .behind: "the rows are older ones, of before the enrollment"
    case .exhausted: "the version cannot grow any more"
    case .crypto, .sealed(.crypto): "libcrypto failed"
    }
  }
}

extension FleetKey {
  /// Opens both columns. `floor`: the highest version seen of this user.
  func row(
    _ enrollment: [UInt8], _ state: [UInt8], version: UInt64, of name: [UInt8], floor: UInt64?
  ) throws(RowFault) -> Row {
    let digest = try digest(of: enrollment)
    let (opened, body): (Secret, Secret)
    do throws(SealFault) {
      opened = try open(enrollment, .enrollment, of: name)
      body = try open(state, .state(version: version), of: name)
    } catch {
      throw .sealed(error)
    }
    guard let document = FleetDocument.read(opened) else { throw .unreadable }
    let bytes = body.bytes(in: 0..<body.count)
    guard bytes.count >= digest.count, bytes.starts(with: digest) else { throw .otherEnrollment }
    let isBehind = floor.map { version < $0 } ?? false
    let mark = Mark(
      digest: digest, version: version, next: try successor(of: max(version, floor ?? 0)))
    let rest = [UInt8](bytes.dropFirst(digest.count))
    guard let enrolled = document.enrollment else {
      guard rest.isEmpty else { throw .unreadable }
      // It could be that of before he enrolled.
      if isBehind { throw .behind }
      return Row(document: document, state: nil, mark: mark, isBehind: false)
    }
    guard let state = LoginState.read(rest) else { throw .unreadable }
    guard state.enrollmentID == enrolled.id else { throw .otherEnrollment }
    return Row(document: document, state: state, mark: mark, isBehind: isBehind)
  }

  /// The two bodies, and the digest of the first.
  func bodies(
    _ document: FleetDocument, _ state: LoginState?, version: UInt64, of name: [UInt8]
  ) throws(RowFault) -> (enrollment: [UInt8], state: [UInt8]) {
    guard let text = document.written() else { throw .crypto(.outOfMemory) }
    let enrollment: [UInt8]
    do throws(SealFault) {
      enrollment = try seal(text, .enrollment, of: name)
    } catch {
      throw .sealed(error)
    }
    return (
      enrollment,
      try body(state, for: try digest(of: enrollment), version: version, of: name)
    )
  }

  func body(
    _ state: LoginState?, for digest: [UInt8], version: UInt64, of name: [UInt8]
  ) throws(RowFault) -> [UInt8] {
    var bytes = digest
    if let state {
      guard let fields = state.written() else { throw .unreadable }
      bytes += fields
    }
    guard let text = Secret(bytes) else { throw .crypto(.outOfMemory) }
    do throws(SealFault) {
      return try seal(text, .state(version: version), of: name)
    } catch {
      throw .sealed(error)
    }
  }

  private func digest(of body: [UInt8]) throws(RowFault) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest(body)
    } catch {
      throw .crypto(error)
    }
  }

  private func successor(of version: UInt64) throws(RowFault) -> UInt64 {
    guard version < UInt64(Int64.max) else { throw .exhausted }
    return version + 1
  }
}
