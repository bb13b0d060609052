/// A file of pam.d as lines, to add our lines and remove them. Adding and then removing them leaves
/// the bytes as they were.
package struct ServiceFile: Equatable {
  /// Each with its newline, which the last may lack.
  private(set) var lines: [[UInt8]]

  private let rules: LibpamRules

  init(_ bytes: [UInt8], _ rules: LibpamRules) {
    (lines, self.rules) = ([], rules)
    var rest = bytes[...]
    while let newline = rest.firstIndex(of: 0x0a) {
      lines.append(Array(rest[...newline]))
      rest = rest[(newline + 1)...]
    }
    if !rest.isEmpty { lines.append(Array(rest)) }
  }

  var bytes: [UInt8] { lines.flatMap { $0 } }

  /// Inserts `line` before line `number`, counted from 1; the number after the last one appends it.
  mutating func insert(_ line: String, before number: Int) {
    var line = Array(line.utf8)
    let index = min(max(number - 1, 0), lines.count)
    if index == lines.count, let last = lines.last, last.last != 0x0a {
      // The new last line ends as the old one did, so that removing it can restore that ending.
      lines[index - 1].append(0x0a)
    } else {
      line.append(0x0a)
    }
    lines.insert(line, at: index)
  }

  /// The ranges of lines that name our module or include its gate; a line that is continued spans
  /// several numbers.
  var ours: [ClosedRange<Int>] {
    var text = StackText(bytes, rules)
    var found: [ClosedRange<Int>] = []
    while case .line(let line) = text.next() {
      var words = StackWords(line.bytes)
      guard let type = words.next(), !equal(type, "@include"), words.next() != nil,
        let module = words.next()
      else { continue }
      let name = module.split(separator: UInt8(ascii: "/")).last ?? []
      let isGate = StackGate.paths.contains { module.elementsEqual($0.utf8) }
      if isGate || name.elementsEqual("pam_sallyport.so".utf8) { found.append(line.numbers) }
    }
    return found
  }

  /// Put in front of a line that is disabled while a key replaces the password.
  static let omission = Array("#after-key# ".utf8)

  /// The numbers of the lines that are disabled.
  var omitted: [Int] {
    lines.indices.filter { lines[$0].starts(with: ServiceFile.omission) }.map { $0 + 1 }
  }

  /// Comments these lines out.
  func omitting(_ numbers: ClosedRange<Int>) -> ServiceFile {
    var file = self
    for number in numbers where file.lines.indices.contains(number - 1) {
      file.lines[number - 1] = ServiceFile.omission + file.lines[number - 1]
    }
    return file
  }

  /// Without the lines that name our module, and with the disabled lines enabled again.
  var withoutOurs: ServiceFile {
    var file = self
    for number in omitted { file.lines[number - 1].removeFirst(ServiceFile.omission.count) }
    for range in ours.reversed() {
      let indices = (range.lowerBound - 1)...(range.upperBound - 1)
      let wasLast = range.upperBound == file.lines.count
      let endsOpen = wasLast && file.lines.last?.last != 0x0a
      file.lines.removeSubrange(indices)
      if endsOpen, let last = file.lines.indices.last { file.lines[last].removeLast() }
    }
    return file
  }

  /// The number of the line that ends the part written by pam-auth-update; nil if there is none.
  var endOfProfiles: Int? {
    lines.firstIndex { $0.starts(with: "# end of pam-auth-update config".utf8) }.map { $0 + 1 }
  }
}
