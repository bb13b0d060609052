package import OneTimePassword
package import SallyportCore

/// What a host of a fleet keeps of an enrollment for the time in which it can ask no verifier
/// (docs/enrollment-format.md). The ordinary reader refuses its file, by its first key, and this
/// one refuses the files of enrollments.
package struct ReserveEntry: Sendable {
  /// Of its backup codes alone: without a uid, authenticators and scratch codes.
  package let enrollment: Enrollment
  /// By which the verifiers know again that they gave these backup codes to this host.
  package let receipt: [UInt8]

  /// In bytes: the length of a receipt.
  package static let receiptLength = 32

  package init(_ enrollment: Enrollment, receipt: [UInt8]) {
    (self.enrollment, self.receipt) = (enrollment, receipt)
  }

  /// The text of its file; nil for a receipt of another length, if there is more in it than a
  /// reserve may have, or if memory is short.
  package func written() -> Secret? {
    guard receipt.count == ReserveEntry.receiptLength, enrollment.isReserve,
      let text = enrollment.written()
    else { return nil }
    var reserve = SecretText(capacity: text.count + 256)
    reserve.add("# Kept by sallyportd(8) for when no verifier of the fleet can be asked.\n")
    reserve.add("reserve", hexadecimal(receipt))
    // Without its own first line, which tells of another file.
    guard let end = text.first(UInt8(ascii: "\n"), in: 0..<text.count),
      let rest = text.slice(end + 1..<text.count)
    else { return nil }
    reserve.add(rest)
    return reserve.finish()
  }

  /// Parses it. Any bytes give an entry with backup codes, and without a uid, authenticators and
  /// scratch codes; or an error with its line.
  package static func read(_ text: Secret) throws(SettingsError) -> ReserveEntry {
    var lines = try SettingsScanner(text)
    guard case .setting(let key, let value) = try lines.next(), text.holds("reserve", in: key)
    else { throw SettingsError(line: max(lines.number, 1), .missing("reserve")) }
    guard let receipt = text.octets(receiptLength, spelledIn: value) else {
      throw SettingsError(
        line: lines.number, .value("reserve", wanted: "64 hexadecimal digits"))
    }
    // The rest under the rules of all enrollments: the first line becomes a comment.
    guard let rest = text.slice(0..<text.count) else {
      throw SettingsError(line: 1, .outOfMemory)
    }
    rest.set(key.lowerBound, to: UInt8(ascii: "#"))
    let enrollment = try Enrollment.readPart(rest)
    guard enrollment.backupCodes != nil else {
      throw SettingsError(line: 1, .missing("backup_codes"))
    }
    guard enrollment.isReserve else {
      throw SettingsError(line: 1, .tooMany("uid, authenticator, pass or scratch_code"))
    }
    return ReserveEntry(enrollment, receipt: receipt)
  }
}

extension Enrollment {
  /// Whether it has what a reserve has, and no more.
  fileprivate var isReserve: Bool {
    uid == nil && authenticators.isEmpty && passes.isEmpty && suspended.isEmpty
      && backupCodes != nil && scratchCodes == nil
  }
}
