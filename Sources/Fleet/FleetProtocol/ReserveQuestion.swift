import OneTimePassword
package import SallyportCore

/// What a host of a fleet asks about its reserve (docs/fleet-format.md).
package enum ReserveQuestion: Equatable, Sendable {
  /// The backup codes of somebody who has just logged in here. `receipt`: of those that the host
  /// has, if it has any; then he need not have logged in just now.
  case fetch(UserName, receipt: [UInt8]?)
  /// What was used while the host was cut off, and whether the fleet still has these entries; at
  /// most `most` of them. A question without entries asks whether a verifier answers.
  case confirm([Entry])
  /// Which start of its service this is. A verifier of the former version does not read it.
  case start(HostStart)

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
  /// Of the HMAC-SHA-256 that a receipt is.
  static let receiptLength = 32
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
  /// To `start`.
  case start(HostStartReply)

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

// MARK: frames

extension ReserveQuestion: SecretFrame {
  package static let longest = SettingsScanner.longestText

  package static func pass(_ question: Self?, _ fields: inout Fields) -> Self? {
    let (kind, name, receipt, entries): (UInt8?, UserName?, [UInt8]?, [Entry]?)
    var start: HostStart?
    switch question {
    case nil: (kind, name, receipt, entries) = (nil, nil, nil, nil)
    case .fetch(let one, let own)?: (kind, name, receipt, entries) = (1, one, own, nil)
    case .confirm(let all)?: (kind, name, receipt, entries) = (2, nil, nil, all)
    case .start(let own)?: (kind, name, receipt, entries, start) = (3, nil, nil, nil, own)
    }
    switch fields.byte(kind) {
    case 1:
      return fields.name(name).map { name in
        .fetch(
          name, receipt: fields.optional(receipt) { $0.bytes($1, ReserveQuestion.receiptLength) })
      }
    case 2: return .confirm(fields.list(entries, 0...most) { Entry.pass($1, &$0) })
    case 3: return .start(HostStart.pass(start, &fields))
    case _: return nil
    }
  }
}

extension ReserveQuestion.Entry {
  fileprivate static func pass(_ entry: Self?, _ fields: inout Fields) -> Self? {
    guard let name = fields.name(entry?.name) else { return nil }
    return Self(
      name: name, enrollmentID: fields.id(entry?.enrollmentID),
      receipt: fields.bytes(entry?.receipt, ReserveQuestion.receiptLength),
      setID: fields.id(entry?.setID), used: fields.number(entry?.used))
  }
}

extension ReserveAnswer: FrameAnswer {
  package static let longest = 4096

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    let (kind, section, verdicts): (Int?, Section?, [Verdict]?) =
      switch answer {
      case nil: (nil, nil, nil)
      case .section(let section)?: (1, section, nil)
      case .some(.none): (2, nil, nil)
      case .confirmed(let verdicts)?: (3, nil, verdicts)
      case .busy?: (4, nil, nil)
      case .start(let reply)?: (reply.rawValue, nil, nil)
      }
    switch fields.kind(kind, of: 7) {
    case 1: return .section(Section.pass(section, &fields))
    case 2: return .some(.none)
    case 3:
      return .confirmed(
        fields.list(verdicts, 0...ReserveQuestion.most) { Verdict.pass($1, &$0) })
    case 4: return .busy
    case let other: return HostStartReply(rawValue: other).map { .start($0) }
    }
  }

  /// Total: any bytes give an answer to this question that is written to the same bytes, or nil.
  package static func decode(_ frame: [UInt8], to question: ReserveQuestion) -> ReserveAnswer? {
    decode(frame).flatMap { $0.answers(question) ? $0 : nil }
  }

  private func answers(_ question: ReserveQuestion) -> Bool {
    switch (self, question) {
    case (.section, .fetch), (.none, .fetch), (.busy, _), (.start, .start): true
    case (.confirmed(let verdicts), .confirm(let entries)):
      verdicts.count <= entries.count && (entries.isEmpty || !verdicts.isEmpty)
    case (.section, .confirm), (.none, .confirm), (.confirmed, .fetch): false
    case (.section, .start), (.none, .start), (.confirmed, .start), (.start, _): false
    }
  }
}

extension ReserveAnswer.Section {
  fileprivate static func pass(_ section: Self?, _ fields: inout Fields) -> Self {
    let id = fields.id(section?.enrollmentID)
    let receipt = fields.bytes(section?.receipt, ReserveQuestion.receiptLength)
    let own = section?.set
    // Scratch codes have no place here.
    if own?.scratchDigests.isEmpty == false { fields.fail() }
    let set = BackupCodeSet(
      id: fields.id(own?.id), salt: fields.bytes(own?.salt, BackupCodeSet.saltLength),
      digests: fields.list(own?.digests, 0...BackupCodeSet.maximumCodes) { $0.bytes($1, 32) })
    return Self(
      enrollmentID: id, receipt: receipt, set: set, used: fields.number(section?.used))
  }
}

extension ReserveAnswer.Verdict {
  fileprivate static func pass(_ verdict: Self?, _ fields: inout Fields) -> Self? {
    let (kind, used): (Int?, UInt64?) =
      switch verdict {
      case nil: (nil, nil)
      case .keep(let used)?: (1, used)
      case .replace?: (2, nil)
      case .delete?: (3, nil)
      }
    switch fields.kind(kind, of: 3) {
    case 1: return .keep(used: fields.number(used))
    case 2: return .replace
    case 3: return .delete
    case _: return nil
    }
  }
}
