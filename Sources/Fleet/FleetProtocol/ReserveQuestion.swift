package import OneTimePassword
import SallyportAdministration
package import SallyportCore

/// What a host of a fleet asks about its reserve (docs/fleet-format.md).
package enum ReserveQuestion: Equatable, Sendable {
  /// The backup codes of somebody who has just logged in here. `receipt`: of those that the host
  /// has, if it has any; then he need not have logged in just now.
  case fetch(UserName, receipt: [UInt8]?)
  /// What was used while the host was cut off, and whether the fleet still has these entries; at
  /// most `most` of them. A question without entries asks whether a verifier answers.
  case confirm([Entry])

  /// Of one person, what the host has.
  package struct Entry: Equatable, Sendable {
    package let name: UserName
    /// Of the enrollment, never 0.
    package let enrollmentID: UInt64
    /// 32 bytes.
    package let receipt: [UInt8]
    /// Of the backup codes, never 0.
    package let setID: UInt64
    /// Bit n: the n-th code is used.
    package let used: UInt64

    package init(
      name: UserName, enrollmentID: UInt64, receipt: [UInt8], setID: UInt64, used: UInt64
    ) {
      (self.name, self.enrollmentID, self.receipt) = (name, enrollmentID, receipt)
      (self.setID, self.used) = (setID, used)
    }
  }

  package static let most = 200
}

/// What a verifier answers to it.
package enum ReserveAnswer: Equatable, Sendable {
  /// To `fetch`.
  case section(Section)
  /// To `fetch`: this host may not have any of this person.
  case none
  /// To `confirm`: of the first entries, in their order. It may be fewer than were asked,
  /// where the time was over.
  case confirmed([Verdict])
  /// Not now: the verifier is busy.
  case busy

  /// The backup codes of one person, without scratch codes.
  package struct Section: Equatable, Sendable {
    package let enrollmentID: UInt64
    package let receipt: [UInt8]
    package let set: BackupCodeSet
    package let used: UInt64

    package init(enrollmentID: UInt64, receipt: [UInt8], set: BackupCodeSet, used: UInt64) {
      (self.enrollmentID, self.receipt) = (enrollmentID, receipt)
      (self.set, self.used) = (set, used)
    }
  }

  /// What becomes of an entry.
  package enum Verdict: Equatable, Sendable {
    /// It stays; so is used of it by now, what the host has sent included.
    case keep(used: UInt64)
    /// The enrollment has other codes by now: fetch them.
    case replace
    /// Gone from the fleet, or never this host's.
    case delete
  }
}

// Version (1 byte, 1), kind (1), fields. Numbers are little-endian.

extension ReserveQuestion {
  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> Secret? {
    var frame = ByteWriter(count: SettingsScanner.longestText)
    frame.put(count: 1)
    switch self {
    case .fetch(let name, let receipt):
      frame.put(count: 1)
      frame.put(counted: name.bytes)
      frame.put(isThere: receipt != nil)
      if let receipt { frame.put(receipt: receipt) }
    case .confirm(let entries):
      frame.put(count: 2)
      frame.put(count: entries.count, atMost: ReserveQuestion.most)
      for entry in entries { frame.put(entry) }
    }
    return frame.isWhole ? Secret(frame.bytes.prefix(frame.position)) : nil
  }

  /// Total: any bytes give a question that is written to the same bytes, or nil.
  package static func decode(_ frame: Secret) -> ReserveQuestion? {
    guard frame.count <= SettingsScanner.longestText else { return nil }
    var fields = ByteReader(frame.bytes(in: 0..<frame.count), 0..<frame.count)
    guard fields.count(atMost: 1) == 1, let question = fields.reserveQuestion(), fields.isWhole,
      fields.isAtEnd
    else { return nil }
    return question
  }
}

extension ReserveAnswer {
  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var frame = ByteWriter(count: 4096)
    frame.put(count: 1)
    switch self {
    case .section(let section):
      frame.put(robust: 1)
      frame.put(section)
    case .none: frame.put(robust: 2)
    case .confirmed(let verdicts):
      frame.put(robust: 3)
      frame.put(count: verdicts.count, atMost: ReserveQuestion.most)
      for verdict in verdicts { frame.put(verdict) }
    case .busy: frame.put(robust: 4)
    }
    return frame.isWhole ? [UInt8](frame.bytes.prefix(frame.position)) : nil
  }

  /// Total: any bytes give an answer to this question that is written to the same bytes, or nil.
  package static func decode(_ frame: [UInt8], to question: ReserveQuestion) -> ReserveAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.count(atMost: 1) == 1, let answer = fields.reserveAnswer(), fields.isWhole,
      fields.isAtEnd, answer.answers(question)
    else { return nil }
    return answer
  }

  private func answers(_ question: ReserveQuestion) -> Bool {
    switch (self, question) {
    case (.section, .fetch), (.none, .fetch), (.busy, _): true
    case (.confirmed(let verdicts), .confirm(let entries)):
      verdicts.count <= entries.count && (entries.isEmpty || !verdicts.isEmpty)
    case (.section, .confirm), (.none, .confirm), (.confirmed, .fetch): false
    }
  }
}

extension ByteWriter {
  fileprivate mutating func put(receipt: [UInt8]) {
    if receipt.count != ReserveEntry.receiptLength { fail() }
    put(receipt)
  }

  fileprivate mutating func put(id: UInt64) {
    if id == 0 { fail() }
    put(id)
  }

  fileprivate mutating func put(_ entry: ReserveQuestion.Entry) {
    put(counted: entry.name.bytes)
    put(id: entry.enrollmentID)
    put(receipt: entry.receipt)
    put(id: entry.setID)
    put(entry.used)
  }

  fileprivate mutating func put(_ section: ReserveAnswer.Section) {
    let set = section.set
    put(id: section.enrollmentID)
    put(receipt: section.receipt)
    put(id: set.id)
    if set.salt.count != BackupCodeSet.saltLength || !set.scratchDigests.isEmpty { fail() }
    put(set.salt)
    put(count: set.digests.count, atMost: BackupCodeSet.maximumCodes)
    for digest in set.digests {
      if digest.count != 32 { fail() }
      put(digest)
    }
    put(section.used)
  }

  fileprivate mutating func put(_ verdict: ReserveAnswer.Verdict) {
    switch verdict {
    case .keep(let used):
      put(robust: 1)
      put(used)
    case .replace: put(robust: 2)
    case .delete: put(robust: 3)
    }
  }
}

extension ByteReader {
  /// Valid only if the reader then reports success at the end of its input; so below.
  fileprivate mutating func reserveQuestion() -> ReserveQuestion? {
    switch count(atMost: 2) {
    case 1:
      guard let name = UserName(counted()) else { return nil }
      return .fetch(name, receipt: isThere() ? take(ReserveEntry.receiptLength) : nil)
    case 2:
      var entries: [ReserveQuestion.Entry] = []
      for _ in 0..<count(atMost: ReserveQuestion.most) {
        guard let entry = reserveEntry() else { return nil }
        entries.append(entry)
      }
      return .confirm(entries)
    case _: return nil
    }
  }

  private mutating func reserveEntry() -> ReserveQuestion.Entry? {
    guard let name = UserName(counted()) else { return nil }
    return ReserveQuestion.Entry(
      name: name, enrollmentID: id(), receipt: take(ReserveEntry.receiptLength), setID: id(),
      used: number64())
  }

  private mutating func id() -> UInt64 {
    let id = number64()
    if id == 0 { fail() }
    return id
  }

  fileprivate mutating func reserveAnswer() -> ReserveAnswer? {
    switch robust(atMost: 4) {
    case 1: return .section(reserveSection())
    case 2: return ReserveAnswer.none
    case 3:
      var verdicts: [ReserveAnswer.Verdict] = []
      for _ in 0..<count(atMost: ReserveQuestion.most) {
        switch robust(atMost: 3) {
        case 1: verdicts.append(.keep(used: number64()))
        case 2: verdicts.append(.replace)
        case 3: verdicts.append(.delete)
        case _: return nil
        }
      }
      return .confirmed(verdicts)
    case 4: return .busy
    case _: return nil
    }
  }

  private mutating func reserveSection() -> ReserveAnswer.Section {
    let enrollment = id()
    let receipt = take(ReserveEntry.receiptLength)
    let (set, salt) = (id(), take(BackupCodeSet.saltLength))
    var digests: [[UInt8]] = []
    for _ in 0..<count(atMost: BackupCodeSet.maximumCodes) { digests.append(take(32)) }
    return ReserveAnswer.Section(
      enrollmentID: enrollment, receipt: receipt,
      set: BackupCodeSet(id: set, salt: salt, digests: digests), used: number64())
  }
}
