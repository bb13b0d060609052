package import OneTimePassword

// A catalog: the sentences of one language, in a file that root may change.

extension Sentences {
  /// In bytes: the longest sentence.
  private static var longest: Int { 500 }

  /// Reads lines `key = sentence` with the keys of the English ones in their order, up to a
  /// `[section]` or the end. Each sentence has the places of the English one, each once, in any
  /// order, and nothing that deceives a terminal. With one mistake no line of it counts.
  ///
  /// `lines`: of the catalog, from where the first one is expected.
  package init(
    catalog: Secret, _ lines: inout SettingsScanner, english: StaticString = Sentence.english
  ) throws(SettingsError) {
    guard let model = Secret(bytes(of: english)) else {
      throw SettingsError(line: 1, .outOfMemory)
    }
    var (ours, whole) = (try SettingsScanner(model), [UInt8]())
    while case .setting(let key, let sentence)? = try ours.next() {
      guard case .setting(let found, let value)? = try lines.next(),
        same(catalog.bytes(in: found), model.bytes(in: key)),
        let line = Sentences.line(catalog.bytes(in: value), model.bytes(in: sentence))
      else {
        throw SettingsError(
          line: max(lines.number, 1),
          .value("sentence", wanted: "the next of English, with its places"),
          found: catalog.bytes(in: lines.line))
      }
      whole += line
    }
    if case .setting? = try lines.next() { throw SettingsError(line: lines.number, .unknownKey) }
    self.init(lines: whole)
  }

  /// As `lines` has it; nil for what is no translation of the English sentence.
  private static func line(_ sentence: [UInt8], _ english: [UInt8]) -> [UInt8]? {
    guard (1...longest).contains(sentence.count), Label.isPresentable(sentence) else { return nil }
    var (line, left, index) = (bytes(of: "= "), english, 0)
    while index < sentence.count {
      var byte = sentence[index]
      if byte == UInt8(ascii: "{") {
        guard let place = take(sentence, &index, from: &left) else { return nil }
        byte = place
      }
      index += 1
      if byte == UInt8(ascii: "\\") {
        guard index < sentence.count, sentence[index] == UInt8(ascii: "n") else { return nil }
      }
      line.append(byte)
    }
    line.append(0x0a)
    return left.contains(UInt8(ascii: "{")) ? nil : line
  }

  /// The number of the place at `index`, which then is its end: that of the English sentence, where
  /// it is struck out.
  private static func take(_ sentence: [UInt8], _ index: inout Int, from english: inout [UInt8])
    -> UInt8?
  {
    var place: UInt8 = 0
    for start in english.indices where english[start] == UInt8(ascii: "{") || english[start] == 1 {
      place += 1
      var (end, here) = (start, index)
      while end < english.count, here < sentence.count, english[end] == sentence[here] {
        if english[end] == UInt8(ascii: "}") {
          english[start] = 1
          index = here
          return place
        }
        (end, here) = (end + 1, here + 1)
      }
    }
    return nil
  }
}
