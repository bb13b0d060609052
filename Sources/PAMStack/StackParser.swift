/// Reads the stacks of a service as libpam does (Linux-PAM 1.5.2, `_pam_init_handlers`, with the
/// changes of Debian 12). Total: every content of every file gives a result.
package struct StackParser {
  private let files: StackFiles
  private var stack: ServiceStack
  /// Lines that will still be read: an end to what has none.
  private var lines = 20_000
  /// libpam itself comes to grief here: there is no stack, wherever in the nest of includes it was.
  private var isLost = false

  /// No set-up has as many; libpam itself counts substacks only, 16 at most.
  private static let deepest = 48
  private static let mostLevels = 16

  /// The stacks of `service`, a name as an application gives it to pam_start.
  package static func parse(service: String, _ files: StackFiles) -> ServiceStack {
    var parser = StackParser(service: service, files)
    parser.parseAll()
    return parser.stack
  }

  /// One file alone, as the service `other` would be read from it; for tests and fuzzing.
  package static func parse(_ content: [UInt8]) -> ServiceStack {
    parse(service: "file", .debian { $0 == "/etc/pam.d/file" ? content : nil })
  }

  private init(service: String, _ files: StackFiles) {
    // As pam_start: without directories, in lower case.
    let name = service.utf8.split(separator: UInt8(ascii: "/")).last.map { $0.map(lowered) } ?? []
    let text = String(decoding: name, as: UTF8.self)
    self.files = files
    stack = ServiceStack(service: text, file: files.service(text)?.path)
  }

  private mutating func parseAll() {
    let own = stack.file.flatMap { _ in files.service(stack.service) }
    // A service of the name `other` fills the fallback, twice.
    if let own, !readTop(own, isOther: stack.service == "other") {
      stack.isAborted = true
      return
    }
    let other = files.service("other")
    if let other, !readTop(other, isOther: true) {
      stack.isAborted = true
      return
    }
    if own == nil, other == nil {
      stack.isAborted = true
      let location = StackLocation(
        file: "\(files.directories.first ?? "")/\(stack.service)", line: 0)
      stack.faults.append(StackFault(location: location, problem: .noFile))
    }
  }

  private mutating func readTop(_ file: StackFiles.File, isOther: Bool) -> Bool {
    read(file, Position(isOther: isOther))
  }

  /// Where in the nest of includes a file is read.
  private struct Position {
    let isOther: Bool
    /// What the including line was for; nil: everything.
    var phase: PAMPhase?
    /// Of substacks, as libpam counts.
    var level = 0
    /// Of all includes.
    var depth = 0
    var root: ClosedRange<Int>?
  }

  /// False where libpam gives up the whole service.
  private mutating func read(_ file: StackFiles.File, _ position: Position) -> Bool {
    if !stack.files.contains(file.path) { stack.files.append(file.path) }
    var text = StackText(file.content)
    defer {
      if text.isOverlong { note(.overlong, StackLocation(file: file.path, line: 1)) }
    }
    while true {
      switch text.next() {
      case .end: return true
      case .broken(let line):
        note(.unreadable, StackLocation(file: file.path, line: line))
        return false
      case .line(let line):
        let location = StackLocation(file: file.path, line: line.numbers.lowerBound)
        lines -= 1
        guard lines > 0 else { return lose(.endless(file.path), location) }
        var position = position
        position.root = position.root ?? line.numbers
        var reader = LineReader(
          words: StackWords(line.bytes), location: location, position: position)
        guard parse(&reader) else { return false }
      }
    }
  }

  private mutating func note(_ problem: StackProblem, _ location: StackLocation) {
    let fault = StackFault(location: location, problem: problem)
    if !stack.faults.contains(fault) { stack.faults.append(fault) }
  }

  private mutating func lose(_ problem: StackProblem, _ location: StackLocation) -> Bool {
    note(problem, location)
    isLost = true
    return false
  }

  /// What is known of a line while it is read.
  private struct LineReader {
    var words: StackWords
    let location: StackLocation
    let position: Position
    var kind = StackEntry.Kind.module
    var isSilent = false
    var phase = PAMPhase.auth
  }

  private mutating func parse(_ line: inout LineReader) -> Bool {
    var type = line.words.next()
    if let word = type, word.first == UInt8(ascii: "-") {
      line.isSilent = true
      type = Array(word.dropFirst())
    }
    if let type, files.knowsAtInclude, equal(type, "@include") {
      return include(line.words.next(), line, phase: line.position.phase, as: 0)
    }
    if let type, let phase = PAMPhase(word: type) {
      line.phase = phase
    } else {
      // The most sensitive of them, libpam says.
      line.phase = line.position.phase ?? .auth
      line.kind = .mustFail
      note(type.map { .unknownType(text($0)) } ?? .noType, line.location)
    }
    if let wanted = line.position.phase, wanted != line.phase { return true }
    return parseControl(&line)
  }

  private mutating func parseControl(_ line: inout LineReader) -> Bool {
    guard let control = line.words.next() else {
      note(.noControl, line.location)
      note(.noModule, line.location)
      line.kind = .mustFail
      return add(line, .allBad, module: nil, [])
    }
    if equal(control, "include") {
      return include(line.words.next(), line, phase: line.phase, as: 0)
    }
    if equal(control, "substack") {
      return include(line.words.next(), line, phase: line.phase, as: 1)
    }
    var isBroken = false
    let controls = PAMControls(word: control, isBroken: &isBroken)
    if isBroken { note(.badControl(text(control)), line.location) }
    guard let module = line.words.next() else {
      note(.noModule, line.location)
      line.kind = .mustFail
      return add(line, controls, module: nil, [])
    }
    return add(line, controls, module: text(module), line.words.rest().map(text))
  }

  /// `level` is 1 for a substack. `phase` is nil for `@include` where all types are wanted.
  private mutating func include(
    _ word: [UInt8]?, _ line: LineReader, phase: PAMPhase?, as level: Int
  ) -> Bool {
    guard let word else {
      // Debian's libpam follows the pointer to the name that is not there, and ends the process.
      if files.knowsAtInclude { return lose(.noFileNamed, line.location) }
      note(.noFileNamed, line.location)
      return fail(line, phase)
    }
    let name = text(word)
    var line = line
    if level > 0 {
      line.kind = .substack
      guard add(line, .allBad, module: name, []) else { return false }
    }
    if line.position.depth >= StackParser.deepest { return lose(.endless(name), line.location) }
    var inner = line.position
    (inner.phase, inner.level, inner.depth) = (phase, inner.level + level, inner.depth + 1)
    if inner.level < StackParser.mostLevels, let file = files.included(name), read(file, inner) {
      return true
    }
    if isLost { return false }
    note(.cannotInclude(name), line.location)
    return fail(line, phase)
  }

  /// An entry that fails in place of what cannot be included. `@include` has no type to put it
  /// under where all types are wanted: there libpam gives up.
  private mutating func fail(_ line: LineReader, _ phase: PAMPhase?) -> Bool {
    guard let phase else { return false }
    var line = line
    (line.kind, line.phase) = (.mustFail, phase)
    return add(line, .allBad, module: nil, [])
  }

  /// False where libpam cannot make a name for its log of the module's: it gives up, and leaves a
  /// list behind whose end is not set.
  private mutating func add(
    _ line: LineReader, _ controls: PAMControls, module: String?, _ arguments: [String]
  ) -> Bool {
    let entry = StackEntry(
      location: line.location, root: line.position.root ?? 0...0, phase: line.phase,
      kind: line.kind,
      level: line.position.level, controls: controls, module: module ?? "", arguments: arguments,
      isSilent: line.isSilent)
    if let module, !StackParser.hasLogName(module) { return lose(.unreadable, line.location) }
    if line.position.isOther {
      stack.other[line.phase, default: []].append(entry)
    } else {
      stack.own[line.phase, default: []].append(entry)
    }
    return true
  }

  /// libpam's `extract_modulename`: what is left without directories and the last `.` is neither
  /// empty nor `?`.
  private static func hasLogName(_ module: String) -> Bool {
    let file = module.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let bytes = Array(file.last ?? "".utf8[...])
    let name = bytes.lastIndex(of: UInt8(ascii: ".")).map { bytes[..<$0] } ?? bytes[...]
    return !name.isEmpty && !name.elementsEqual("?".utf8)
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

private func lowered(_ byte: UInt8) -> UInt8 {
  (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}
