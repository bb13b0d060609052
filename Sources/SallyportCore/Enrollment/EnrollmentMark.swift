#if !hasFeature(Embedded)
  package import OneTimePassword
#endif

/// That an enrollment is on its way between the files of a machine and its fleet, as its file says
/// (docs/enrollment-format.md). The ordinary reader refuses such a file, by its first key: whoever
/// is under way is judged by no file. Only who moves it reads it on.
package enum MoveMark: Equatable, Sendable {
  /// To the fleet, whose row of this name had that version (0: none) before anything was sent.
  case push(version: UInt64)
  /// To the fleet, which has the name under another enrollment and keeps that one.
  case merge

  static var key: StaticString { "fleet" }
}

#if !hasFeature(Embedded)
  extension MoveMark {
    private static let pushing: StaticString = "push "
    private static let merging: StaticString = "merge"

    fileprivate var value: [UInt8] {
      switch self {
      case .push(let version): bytes(of: MoveMark.pushing) + hexadecimal(version)
      case .merge: bytes(of: MoveMark.merging)
      }
    }

    fileprivate init?(_ text: Secret, at value: Range<Int>) {
      if text.holds(MoveMark.merging, in: value) {
        self = .merge
        return
      }
      let word = MoveMark.pushing.utf8CodeUnitCount
      guard value.count > word,
        text.holds(MoveMark.pushing, in: value.prefix(word)),
        let version = text.hexadecimal(in: value.dropFirst(word))
      else { return nil }
      self = .push(version: version)
    }
  }

  extension Enrollment {
    /// The text of the file with this mark; nil if memory is short.
    package func written(with mark: MoveMark) -> Secret? {
      guard let text = written() else { return nil }
      var marked = SecretText(capacity: text.count + 256)
      marked.add("# On its way to the fleet: sallyport fleet push goes on. Holds secrets.\n")
      marked.add(MoveMark.key, mark.value)
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
        text.holds(MoveMark.key, in: key)
      else { return (try read(text), nil) }
      guard let mark = MoveMark(text, at: value) else {
        throw SettingsError(
          line: lines.number, .value(MoveMark.key, wanted: "push and 16 digits, or merge"))
      }
      // The rest under the rules of all enrollments: the first line becomes a comment.
      guard let rest = text.slice(0..<text.count) else {
        throw SettingsError(line: 1, .outOfMemory)
      }
      rest.set(key.lowerBound, to: UInt8(ascii: "#"))
      return (try read(rest), mark)
    }
  }
#endif
