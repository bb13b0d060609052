package import OneTimePassword
package import SallyportCore

/// That an enrollment is on its way between the files of a machine and its fleet, as its file says
/// (docs/enrollment-format.md). The ordinary reader refuses such a file by its first key: no
/// login is decided by it. Only the command that moves the user reads the rest.
package enum MoveMark: Equatable, Sendable {
  /// To the fleet, whose row of this name had that version (0: none) before anything was sent.
  case push(version: UInt64)
  /// To the fleet, which has the name under another enrollment and keeps that one.
  case merge
  /// From the fleet, whose row had that version when it was copied; `token` is this taking's alone.
  case take(version: UInt64, token: UInt64)
}

extension MoveMark {
  private static let pushing: StaticString = "push "
  private static let merging: StaticString = "merge"
  private static let taking: StaticString = "take "

  fileprivate var value: [UInt8] {
    switch self {
    case .push(let version): bytes(of: MoveMark.pushing) + hexadecimal(version)
    case .merge: bytes(of: MoveMark.merging)
    case .take(let version, let token):
      bytes(of: MoveMark.taking) + hexadecimal(version) + [UInt8(ascii: " ")] + hexadecimal(token)
    }
  }

  private static let digits = 16

  fileprivate init?(_ text: Secret, at value: Range<Int>) {
    if text.holds(MoveMark.merging, in: value) {
      self = .merge
      return
    }
    // Both words have the same length.
    let word = MoveMark.pushing.utf8CodeUnitCount
    guard value.count > word,
      let version = text.hexadecimal(in: value.dropFirst(word).prefix(MoveMark.digits))
    else { return nil }
    let rest = value.dropFirst(word + MoveMark.digits)
    if text.holds(MoveMark.pushing, in: value.prefix(word)), rest.isEmpty {
      self = .push(version: version)
      return
    }
    guard text.holds(MoveMark.taking, in: value.prefix(word)), let space = rest.first,
      text[space] == UInt8(ascii: " "), let token = text.hexadecimal(in: rest.dropFirst()),
      token != 0
    else { return nil }
    self = .take(version: version, token: token)
  }

  fileprivate var remark: StaticString {
    switch self {
    case .push, .merge:
      "# On its way to the fleet: sallyport fleet push goes on. Holds secrets.\n"
    case .take: "# On its way from the fleet: sallyport fleet take goes on. Holds secrets.\n"
    }
  }
}

extension Enrollment {
  /// The text of the file with this mark; nil if memory is short.
  package func written(with mark: MoveMark) -> Secret? {
    guard let text = written() else { return nil }
    var marked = SecretText(capacity: text.count + 256)
    marked.add(mark.remark)
    marked.add(Enrollment.markKey, mark.value)
    // Without its own first line.
    guard let end = text.first(UInt8(ascii: "\n"), in: 0..<text.count),
      let rest = text.slice(end + 1..<text.count)
    else { return nil }
    marked.add(rest)
    return marked.finish()
  }

  /// Parses a file with or without a mark. Any bytes give an enrollment that keeps all rules, or
  /// an error with its line.
  package static func readMoving(_ text: Secret) throws(SettingsError) -> (
    enrollment: Enrollment, mark: MoveMark?
  ) {
    var lines = try SettingsScanner(text)
    guard case .setting(let key, let value) = try lines.next(),
      text.holds(Enrollment.markKey, in: key)
    else { return (try read(text), nil) }
    guard let mark = MoveMark(text, at: value) else {
      throw SettingsError(
        line: lines.number,
        .value(Enrollment.markKey, wanted: "push or take and their digits, or merge"))
    }
    // The rest under the rules of all enrollments: the first line becomes a comment.
    guard let rest = text.slice(0..<text.count) else {
      throw SettingsError(line: 1, .outOfMemory)
    }
    rest.set(key.lowerBound, to: UInt8(ascii: "#"))
    return (try read(rest), mark)
  }
}
