import CSystem
import SallyportText

/// The machine as doctor looks at it: files under a root directory, and the answers of programs. A
/// test brings its own directory and its own answers.
package struct Machine {
  /// In front of every path; empty for the real machine.
  var root = ""
  /// Runs a program by its name, with arguments; absent where there is none of that name.
  var run: (_ words: [String]) -> Probe<CommandOutput> = Machine.runProgram

  package init(
    root: String = "",
    run: @escaping (_ words: [String]) -> Probe<CommandOutput> = Machine.runProgram
  ) {
    (self.root, self.run) = (root, run)
  }

  /// More of a file or of an answer is not read.
  static let longestText = 1 << 20
  private static let patience: Int32 = 10_000

  /// A text file, or its first mebibyte. What is no UTF-8 is fixed.
  func text(_ path: String) -> Probe<String> {
    bytes(path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A regular file, or so much of it, links followed.
  func bytes(_ path: String, limit: Int = Machine.longestText) -> Probe<[UInt8]> {
    var count = 0
    var problem: Int32 = 0
    // SAFETY: the buffer has as many bytes as are said; the path lives for the call.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
      guard let base = buffer.baseAddress else { return }
      problem = unsafe inspect_read(root + path, base, limit, &count)
      initialized = count
    }
    switch problem {
    case 0: return .seen(bytes)
    case ENOENT, ENOTDIR: return .absent
    case _: return .unseen("\(path): \(errnoText(problem))")
    }
  }

  /// What a path is; of a link itself where it is not followed.
  func file(_ path: String, following: Bool = true) -> Probe<FileFacts> {
    var found = inspected_file()
    // SAFETY: both pointers live for the call.
    let problem = unsafe inspect_file(root + path, following, &found)
    switch problem {
    case 0: return .seen(FileFacts(found))
    case ENOENT, ENOTDIR: return .absent
    case _: return .unseen("\(path): \(errnoText(problem))")
    }
  }

  /// The paths that match a shell pattern, sorted.
  func paths(_ pattern: String) -> [String] {
    var size = 0
    // SAFETY: the buffer has as many bytes as are said.
    let names = unsafe [UInt8](unsafeUninitializedCapacity: Machine.longestText) { buffer, count in
      guard let base = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
      size = unsafe inspect_glob(
        root + pattern, base.assumingMemoryBound(to: CChar.self), buffer.count)
      count = size
    }
    return names.split(separator: 0).map {
      String(String(decoding: $0, as: UTF8.self).dropFirst(root.count))
    }
  }

  /// The file system that holds a path.
  func disk(_ path: String) -> Probe<DiskFacts> {
    var found = inspected_disk()
    // SAFETY: both pointers live for the call.
    let problem = unsafe inspect_disk(root + path, &found)
    if problem == ENOENT || problem == ENOTDIR { return .absent }
    return problem == 0 ? .seen(DiskFacts(found)) : .unseen("\(path): \(errnoText(problem))")
  }

  // MARK: programs

  /// What a program says that ends well; nil where it does not, or cannot be run.
  func answer(_ words: [String]) -> String? {
    let done = run(words).value
    return done?.status == 0 ? done?.output : nil
  }

  /// Where programs are looked for, whatever PATH says.
  static let programDirectories = [
    "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin",
  ]

  /// No shell, a clean environment, ten seconds, a mebibyte.
  static func runProgram(_ words: [String]) -> Probe<CommandOutput> {
    let real = Machine()
    guard let name = words.first,
      let path = programDirectories.map({ "\($0)/\(name)" }).first(where: {
        real.file($0).value?.isRegular == true
      })
    else { return .absent }
    return run(program: path, Array(words.dropFirst()))
  }

  private static func run(program path: String, _ arguments: [String]) -> Probe<CommandOutput> {
    let line: [UInt8] = ([path] + arguments).flatMap { Array($0.utf8) + [0] }
    var result = inspected_run()
    var output = [CChar](repeating: 0, count: longestText)
    var errors = output
    // SAFETY: each text ends in NUL, and both buffers have as many bytes as are said.
    let problem = unsafe line.withUnsafeBytes { line in
      let words = unsafe line.assumingMemoryBound(to: CChar.self)
      guard let base = words.baseAddress else { return EINVAL }
      return unsafe inspect_run(
        base, words.count, patience, &output, &errors, longestText, &result)
    }
    guard problem == 0 else { return .unseen("\(path): \(errnoText(problem))") }
    return .seen(
      CommandOutput(
        status: result.status, output: text(output, result.out), errors: text(errors, result.error))
    )
  }

  private static func text(_ buffer: [CChar], _ count: Int) -> String {
    String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension FileFacts {
  init(_ found: inspected_file) {
    self.init(
      owner: found.owner, mode: found.mode, size: found.size, links: found.links,
      isRegular: found.is_regular, isDirectory: found.is_directory, modified: found.modified,
      born: found.born)
  }
}

/// The lines of a text, also of one with the line ends of Windows, which sudo and sshd read too:
/// each of those is one `Character`.
func linesOf(_ text: String) -> [Substring] {
  text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
}
