/// A file of pam.d as its lines, to put lines in and to take ours out: what is put in and taken out
/// again leaves the bytes as they were.
package struct ServiceFile: Equatable {
  /// Each with its newline, but perhaps the last one.
  private(set) var lines: [[UInt8]]

  init(_ bytes: [UInt8]) {
    lines = []
    var rest = bytes[...]
    while let newline = rest.firstIndex(of: 0x0a) {
      lines.append(Array(rest[...newline]))
      rest = rest[(newline + 1)...]
    }
    if !rest.isEmpty { lines.append(Array(rest)) }
  }

  var bytes: [UInt8] { lines.flatMap { $0 } }

  /// Puts `line` in front of line `number`, counted from 1; one behind the last is the end.
  mutating func insert(_ line: String, before number: Int) {
    var line = Array(line.utf8)
    let index = min(max(number - 1, 0), lines.count)
    if index == lines.count, let last = lines.last, last.last != 0x0a {
      // The new last line ends as the old one did, so that taking it out shows how that was.
      lines[index - 1].append(0x0a)
    } else {
      line.append(0x0a)
    }
    lines.insert(line, at: index)
  }

  /// The numbers of the lines that name our module; a line that goes on has several.
  var ours: [ClosedRange<Int>] {
    var text = StackText(bytes)
    var found: [ClosedRange<Int>] = []
    while case .line(let line) = text.next() {
      var words = StackWords(line.bytes)
      guard let type = words.next(), !equal(type, "@include"), words.next() != nil,
        let module = words.next()
      else { continue }
      let name = module.split(separator: UInt8(ascii: "/")).last ?? []
      if name.elementsEqual("pam_sallyport.so".utf8) { found.append(line.numbers) }
    }
    return found
  }

  /// In front of a line that is left out while a key stands for the password.
  static let omission = Array("#after-key# ".utf8)

  /// The numbers of the lines that are left out.
  var omitted: [Int] {
    lines.indices.filter { lines[$0].starts(with: ServiceFile.omission) }.map { $0 + 1 }
  }

  /// Makes comments of these lines.
  func omitting(_ numbers: ClosedRange<Int>) -> ServiceFile {
    var file = self
    for number in numbers where file.lines.indices.contains(number - 1) {
      file.lines[number - 1] = ServiceFile.omission + file.lines[number - 1]
    }
    return file
  }

  /// Without the lines that name our module, and with those that were left out for it.
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

  /// The number of the line that closes pam-auth-update's own part.
  var endOfProfiles: Int? {
    lines.firstIndex { $0.starts(with: "# end of pam-auth-update config".utf8) }.map { $0 + 1 }
  }
}
