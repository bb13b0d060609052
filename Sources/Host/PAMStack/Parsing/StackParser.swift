/// Parses the stacks of a service as libpam does (`_pam_init_handlers` of Linux-PAM 1.5.2 and 1.7,
/// with the changes of Debian 12 and 13). Every content of every file gives a result.
package struct StackParser {
  private let files: StackFiles
  private var stack: ServiceStack
  /// How many more lines may be read, so that endless includes end.
  private var lines = 20_000
  /// libpam itself fails here: there is no stack, whatever the depth of includes.
  private var isLost = false

  /// More than any real configuration has. libpam limits substacks to 16, since 1.6 all includes.
  private static let deepest = 48
  private static let mostLevels = 16

  /// Parses the stacks of `service`, the name that an application passes to pam_start(3).
  package static func parse(service: String, _ files: StackFiles) -> ServiceStack {
    var parser = StackParser(service: service, files)
    parser.parseAll()
    return parser.stack
  }

  /// Parses one file alone, as the only file of a service; for tests and fuzzing.
  package static func parse(_ content: [UInt8]) -> ServiceStack {
    parse(service: "file", .debian(.before16) { $0 == "/etc/pam.d/file" ? content : nil })
  }

  private init(service: String, _ files: StackFiles) {
    // As pam_start does: without directories, in lower case.
    let name = service.utf8.split(separator: UInt8(ascii: "/")).last.map { $0.map(lowered) } ?? []
    let text = String(decoding: name, as: UTF8.self)
    self.files = files
    stack = ServiceStack(service: text, file: files.service(text)?.path)
  }

  private mutating func parseAll() {
    let own = stack.file.flatMap { _ in files.service(stack.service) }
    // libpam reads the file of a service named `other` into the fallback, twice.
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
      let location = FileLocation(file: "\(files.directories.first ?? "")/\(stack.service)")
      stack.faults.append(StackFault(location: location, problem: .noFile))
    }
  }

  private mutating func readTop(_ file: StackFiles.File, isOther: Bool) -> Bool {
    read(file, Position(isOther: isOther))
  }

  /// The position in the nested includes at which a file is read.
  private struct Position {
    let isOther: Bool
    /// The phase of the including line; nil for all.
    var phase: PAMPhase?
    /// How many substacks, counted as libpam does.
    var level = 0
    /// How many includes of any kind.
    var depth = 0
    var root: ClosedRange<Int>?
  }

  /// Returns false if libpam fails the whole service.
  private mutating func read(_ file: StackFiles.File, _ position: Position) -> Bool {
    if !stack.files.contains(file.path) { stack.files.append(file.path) }
    var text = StackText(file.content, files.rules)
    defer {
      if text.isOverlong { note(.overlong, FileLocation(file: file.path, line: 1)) }
    }
    while true {
      switch text.next() {
      case .end: return true
      case .broken(let line):
        note(.unreadable, FileLocation(file: file.path, line: line))
        return false
      case .line(let line):
        let location = FileLocation(file: file.path, line: line.numbers.lowerBound)
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

  private mutating func note(_ problem: StackProblem, _ location: FileLocation) {
    let fault = StackFault(location: location, problem: problem)
    if !stack.faults.contains(fault) { stack.faults.append(fault) }
  }

  private mutating func lose(_ problem: StackProblem, _ location: FileLocation) -> Bool {
    note(problem, location)
    isLost = true
    return false
  }

  /// The parts of a line that are known so far.
  private struct LineReader {
    var words: StackWords
    let location: FileLocation
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
      // libpam takes `auth`, which its source calls the most sensitive type.
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
    let controls = PAMControls(word: control, files.rules, isBroken: &isBroken)
    if isBroken { note(.badControl(text(control)), line.location) }
    guard let module = line.words.next() else {
      note(.noModule, line.location)
      line.kind = .mustFail
      return add(line, controls, module: nil, [])
    }
    return add(line, controls, module: text(module), line.words.rest().map(text))
  }

  /// `level` is 1 for a substack. `phase` is nil for `@include` of all types.
  private mutating func include(
    _ word: [UInt8]?, _ line: LineReader, phase: PAMPhase?, as level: Int
  ) -> Bool {
    guard let word else {
      // Debian's libpam dereferences the missing name and crashes.
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
    let levels = files.rules == .since16 ? inner.depth : inner.level
    if levels < StackParser.mostLevels, let file = files.included(name), read(file, inner) {
      return true
    }
    if isLost { return false }
    note(.cannotInclude(name), line.location)
    return fail(line, phase)
  }

  /// Adds an entry that fails in place of the file that cannot be included. An `@include` of all
  /// types has no type to put it under; then libpam fails the whole service.
  private mutating func fail(_ line: LineReader, _ phase: PAMPhase?) -> Bool {
    guard let phase else { return false }
    var line = line
    (line.kind, line.phase) = (.mustFail, phase)
    return add(line, .allBad, module: nil, [])
  }

  /// Returns false if libpam cannot derive a name for its log from the module's: it then fails and
  /// leaves an unterminated list behind.
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

  /// As libpam's `extract_modulename`: without directories and the last `.`, the name is neither
  /// empty nor `?`.
  private static func hasLogName(_ module: String) -> Bool {
    let file = module.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let bytes = Array(file.last ?? "".utf8[...])
    let name = bytes.lastIndex(of: UInt8(ascii: ".")).map { bytes[..<$0] } ?? bytes[...]
    return !name.isEmpty && !name.elementsEqual("?".utf8)
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
