package import OneTimePassword
package import SallyportCore
import SallyportSupport

// Converts what each source says. Pure: the time is an argument.

/// The built-in defaults. A policy file may set others.
private let usual = Policy()

extension GoogleAuthenticatorFile {
  package func candidate(for user: [UInt8], at now: UnixTime) -> Candidate {
    var candidate = Candidate(user: user)
    candidate.authenticator = authenticator(at: now, &candidate.remarks)
    candidate.scratchCodes = Array(scratchCodes.prefix(BackupCodeSet.maximumCodes))
    if !scratchCodes.isEmpty {
      candidate.remarks.append(.scratchCodes(candidate.scratchCodes.count))
    }
    let dropped = scratchCodes.count - candidate.scratchCodes.count
    if dropped > 0 { candidate.remarks.append(.scratchCodesDropped(dropped)) }
    if deadScratchCodes > 0 { candidate.remarks.append(.deadScratchCodes(deadScratchCodes)) }
    return candidate
  }

  /// Always SHA-1 and six digits.
  private func authenticator(at now: UnixTime, _ remarks: inout [Remark]) -> ImportedAuthenticator?
  {
    switch kind {
    case .hotp(let next):
      remarks.append(.counterCarried)
      narrowed(Int(window) - 1, Int(usual.lookAhead), &remarks)
      return imported(.hotp, lastAccepted: next - 1)
    case .totp(let period):
      let last = lastStep(at: timeStep(at: now.seconds, period: period), &remarks)
      narrowed(Int(window / 2), Int(usual.adjacentIntervals), &remarks)
      if skew.magnitude > UInt64(usual.adjacentIntervals) {
        remarks.append(.clockOff(steps: skew))
      }
      return imported(
        .totp(period: period), lastAccepted: last, drift: Int32(clamping: skew))
    }
  }

  private func imported(_ type: AuthenticatorType, lastAccepted: UInt64?, drift: Int32 = 0)
    -> ImportedAuthenticator?
  {
    CodeParameters(type: type, algorithm: .sha1, digits: .six).map {
      ImportedAuthenticator(
        parameters: $0, secret: secret, lastAccepted: lastAccepted, drift: drift)
    }
  }

  /// The greatest step that was used. If the other module does not record it, the greatest one that
  /// it may have accepted by now, so that no code works again.
  private func lastStep(at step: UInt64, _ remarks: inout [Remark]) -> UInt64? {
    let (ahead, overflow) = step.addingReportingOverflow(UInt64(window / 2))
    let offset = UInt64(max(0, min(skew, 1_000_000)))
    let greatest = overflow ? UInt64.max : ahead &+ offset
    guard let usedSteps else {
      remarks.append(.reuseAllowed)
      return greatest
    }
    // With a correct clock, later ones cannot have been accepted.
    guard let last = usedSteps.filter({ $0 <= greatest }).max() else { return nil }
    remarks.append(.lastStepCarried)
    return last
  }
}

private func narrowed(_ theirs: Int, _ ours: Int, _ remarks: inout [Remark]) {
  if theirs > ours { remarks.append(.windowNarrowed(theirs: theirs, ours: ours)) }
}

extension URIListLine.ReadURI {
  package func authenticator(_ remarks: inout [Remark]) -> ImportedAuthenticator {
    var last: UInt64?
    switch parameters.type {
    case .totp: break
    case .hotp:
      last = counter > 0 ? counter - 1 : nil
      remarks.append(.counterCarried)
    }
    return ImportedAuthenticator(parameters: parameters, secret: secret, lastAccepted: last)
  }
}

extension UsersOathToken {
  /// `moments` are the times that `lastUse` can stand for: one, or two when clocks are set back.
  /// `preferred` are the digits to use if the line does not specify them. Throws `problem`, or an
  /// error of libcrypto.
  package func authenticator(
    preferring preferred: Digits?, at now: UnixTime, _ moments: [UnixTime],
    _ remarks: inout [Remark]
  ) throws(TakeoverError) -> ImportedAuthenticator {
    if hasPassword { remarks.append(.clearTextPassword) }
    let meant = saysDigits ? digits : preferred ?? digits
    switch type {
    case .hotp: return try counted(meant, &remarks)
    case .totp(let period): return try timed(meant, period: period, at: now, moments, &remarks)
    }
  }

  /// The counter in the file is that of the last code if there is one, otherwise that of the next.
  private func counted(_ meant: Digits, _ remarks: inout [Remark]) throws(TakeoverError)
    -> ImportedAuthenticator
  {
    var digits = meant
    if let used = lastCode?.digits, used != meant,
      try hits(counter...counter, nearest: counter, used) != nil
    {
      digits = used
      remarks.append(.digitsOfLastCode(line: Int(meant.rawValue), code: Int(used.rawValue)))
    }
    guard counter < UInt64.max else { throw .problem(.counter) }
    remarks.append(.counterCarried)
    let last = lastCode != nil ? counter : counter > 0 ? counter - 1 : nil
    return try imported(digits, lastAccepted: last)
  }

  private func timed(
    _ meant: Digits, period: UInt32, at now: UnixTime, _ moments: [UnixTime],
    _ remarks: inout [Remark]
  ) throws(TakeoverError) -> ImportedAuthenticator {
    guard let lastCode else { return try imported(meant, lastAccepted: nil) }
    let present = timeStep(at: now.seconds, period: period)
    let steps = moments.map { timeStep(at: $0.seconds, period: period) }
    guard let used = lastCode.digits, let last = try lastStep(steps, present, used) else {
      remarks.append(.lastCodeNotFound)
      return try imported(meant, lastAccepted: (steps + [present]).min())
    }
    if used != meant {
      remarks.append(.digitsOfLastCode(line: Int(meant.rawValue), code: Int(used.rawValue)))
    }
    let limit = present + UInt64(usual.adjacentIntervals)
    remarks.append(last > limit ? .aheadOfClock : .lastStepCarried)
    return try imported(used, lastAccepted: last)
  }

  /// The step of the last code: near its last use, or near now if the clock or the time zone was
  /// different.
  private func lastStep(_ steps: [UInt64], _ present: UInt64, _ digits: Digits)
    throws(TakeoverError) -> UInt64?
  {
    var found: UInt64?
    for step in steps {
      if let one = try hits(around(step), nearest: step, digits) { found = max(found ?? 0, one) }
    }
    if let found { return found }
    return try hits(around(present), nearest: present, digits)
  }

  /// In time steps: how far from its use a code is searched for.
  private static let reach: UInt64 = 60

  /// Cannot overflow, as steps are at most 2⁶³/30.
  private func around(_ step: UInt64) -> ClosedRange<UInt64> {
    (step > Self.reach ? step - Self.reach : 0)...(step + Self.reach)
  }

  /// The step in the range nearest to `wanted` whose code is the last one used.
  private func hits(_ range: ClosedRange<UInt64>, nearest wanted: UInt64, _ digits: Digits)
    throws(TakeoverError) -> UInt64?
  {
    do throws(CryptoError) {
      let generator = try CodeGenerator(secret: key, algorithm: .sha1, digits: digits)
      for distance in 0...(range.upperBound - range.lowerBound) {
        for place in [wanted &- distance, wanted &+ distance] where range.contains(place) {
          let code = try generator.code(at: place)
          if code == lastCode?.value { return place }
        }
      }
      return nil
    } catch {
      throw .crypto(error)
    }
  }

  private func imported(_ digits: Digits, lastAccepted: UInt64?) throws(TakeoverError)
    -> ImportedAuthenticator
  {
    guard let parameters = CodeParameters(type: type, algorithm: .sha1, digits: digits) else {
      throw .problem(.unknownType)
    }
    return ImportedAuthenticator(parameters: parameters, secret: key, lastAccepted: lastAccepted)
  }
}

/// Why a token that was parsed cannot be imported.
package enum TakeoverError: Error, Equatable {
  case problem(SourceProblem)
  case crypto(CryptoError)
}
