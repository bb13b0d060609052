import CCommand
import Glibc
import SallyportSupport

/// The machine that doctor examines: the files under a root directory, and the output of programs.
/// Tests provide a directory and outputs of their own.
package struct Machine {
  /// Put in front of every path; empty for this machine.
  var root = ""
  /// Runs a program by name, with arguments; `absent` if there is no such program.
  package var run: (_ words: [String]) -> Probe<CommandOutput> = Machine.runProgram
  /// A file as it is planned; without a text it is not there.
  var planned: (path: String, text: String?)?
  private let remote = RemoteFiles()
  private let directories = SilentSources()

  package init(
    root: String = "",
    run: @escaping (_ words: [String]) -> Probe<CommandOutput> = Machine.runProgram
  ) {
    (self.root, self.run) = (root, run)
  }

  /// The directories of names that do not answer; from then on they are not asked.
  @discardableResult
  func leaveSilentSources() -> [String] { directories.leave(on: self) }

  /// In bytes. Of a longer file or output, the rest is not read.
  static let longestText = 1 << 20
  private static let timeout: UInt64 = 10

  /// A text file, or its first mebibyte. Invalid UTF-8 is replaced.
  func text(_ path: String) -> Probe<String> {
    bytes(path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The first `limit` bytes of a regular file; symbolic links are followed.
  func bytes(_ path: String, limit: Int = Machine.longestText) -> Probe<[UInt8]> {
    if let planned, planned.path == path {
      return planned.text.map { .seen(Array($0.utf8)) } ?? .absent
    }
    do throws(SystemError) {
      let file = try OpenFile(root + path, O_RDONLY | O_NONBLOCK)
      guard try file.facts().isRegular else { throw SystemError(EINVAL) }
      return .seen(try file.bytes(limit))
    } catch {
      return Machine.failed(error.number, path)
    }
  }

  /// The last `limit` bytes of a regular file; symbolic links are followed.
  package func end(of path: String, limit: Int) -> Probe<[UInt8]> {
    do throws(SystemError) {
      let file = try OpenFile(root + path, O_RDONLY | O_NONBLOCK)
      let facts = try file.facts()
      guard facts.isRegular else { throw SystemError(EINVAL) }
      let start = max(0, facts.size - limit)
      guard lseek(file.number, off_t(start), SEEK_SET) >= 0 else { throw .last }
      return .seen(try file.bytes(limit))
    } catch {
      return Machine.failed(error.number, path)
    }
  }

  /// As `text`, of a file that a user can change: with the rights of that user, as sshd opens it.
  /// Nothing but a regular file is opened.
  func text(_ path: String, of account: AccountFacts.Account) -> Probe<String> {
    opened(path, of: account) { file throws(SystemError) in
      String(decoding: try file.bytes(Machine.longestText), as: UTF8.self)
    }
  }

  /// Whether such a file has any text; nil if that cannot be seen.
  func hasText(_ path: String, of account: AccountFacts.Account) -> Bool? {
    let size = opened(path, of: account) { file throws(SystemError) in try file.facts().size }
    switch size {
    case .seen(let size): return size > 0
    case .absent: return false
    case .unseen: return nil
    }
  }

  private func opened<Value>(
    _ path: String, of account: AccountFacts.Account,
    _ read: (borrowing OpenFile) throws(SystemError) -> Value
  ) -> Probe<Value> {
    if remote.isSilent(path, on: self) {
      return .unseen("\(path): its file system does not answer")
    }
    let reader = FileReader(user: account.uid, group: account.group, groups: account.groups)
    do throws(SystemError) {
      // Below another root directory it is not known whose the files are.
      let file = try OpenFile.regular(root + path, as: root.isEmpty ? reader : nil)
      return .seen(try read(file))
    } catch {
      return Machine.failed(error == .notRegular ? EINVAL : error.number, path)
    }
  }

  private static func failed<Value>(_ problem: Int32, _ path: String) -> Probe<Value> {
    problem == ENOENT || problem == ENOTDIR
      ? .absent : .unseen("\(path): \(errnoText(problem))")
  }

  /// What stat(2) says about a path, or about the link itself if links are not followed.
  func file(_ path: String, following: Bool = true) -> Probe<FileFacts> {
    var found = statx()
    // SAFETY: both pointers live for the call.
    let problem = unsafe inspect_file(root + path, following, &found)
    return problem == 0 ? .seen(FileFacts(found)) : Machine.failed(problem, path)
  }

  /// The path without symbolic links; unchanged if it does not exist.
  func resolved(_ path: String) -> String {
    // SAFETY: realpath(3) allocates the C string; it is copied, then freed.
    guard let text = unsafe realpath(root + path, nil) else { return path }
    defer { unsafe free(text) }
    let found = unsafe String(cString: text)
    return found.hasPrefix(root) ? String(found.dropFirst(root.count)) : found
  }

  /// The paths that match a shell pattern, sorted.
  package func paths(_ pattern: String) -> [String] {
    guard let planned, Machine.matches(planned.path, pattern) else { return there(pattern) }
    let others = there(pattern).filter { $0 != planned.path }
    // In C's order, as glob(3) has it here.
    return planned.text == nil
      ? others : (others + [planned.path]).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private func there(_ pattern: String) -> [String] {
    var found = unsafe glob_t()
    // SAFETY: after 0 there are as many C strings as it says, until they are freed.
    guard unsafe glob(root + pattern, 0, nil, &found) == 0 else { return [] }
    defer { unsafe globfree(&found) }
    return unsafe (0..<Int(found.gl_pathc)).compactMap { index in
      unsafe found.gl_pathv[index].map {
        String(unsafe String(cString: $0).dropFirst(root.count))
      }
    }
  }

  /// Whether the path matches, as glob(3) does it.
  static func matches(_ path: String, _ pattern: String) -> Bool {
    // SAFETY: both C strings live for the call.
    unsafe fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0
  }

  /// The file system that holds a path.
  func disk(_ path: String) -> Probe<DiskFacts> {
    var found = statfs()
    // SAFETY: both pointers live for the call.
    let problem = unsafe inspect_disk(root + path, &found)
    return problem == 0 ? .seen(DiskFacts(found)) : Machine.failed(problem, path)
  }

  package var isRunBySystemd: Bool { file("/run/systemd/system").value?.isDirectory == true }

  // MARK: programs

  /// The output of a program that succeeds; nil if it fails or cannot be run.
  func answer(_ words: [String]) -> String? {
    let done = run(words).value
    return done?.status == 0 ? done?.output : nil
  }

  /// The directories that are searched for programs, whatever PATH says.
  static let programDirectories = [
    "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin",
  ]

  /// Without a shell, with a clean environment, for at most ten seconds and a mebibyte of output.
  static func runProgram(_ words: [String]) -> Probe<CommandOutput> {
    let real = Machine()
    guard let name = words.first,
      let path = programDirectories.map({ "\($0)/\(name)" }).first(where: {
        real.file($0).value?.isRegular == true
      })
    else { return .absent }
    do throws(SystemError) {
      return .seen(
        try ProgramRun.run([path] + words.dropFirst(), seconds: timeout, limit: longestText))
    } catch {
      return .unseen("\(path): \(errnoText(error.number))")
    }
  }
}

extension FileFacts {
  init(_ found: statx) {
    let kind = mode_t(found.stx_mode) & S_IFMT
    let hasBirth = found.stx_mask & UInt32(STATX_BTIME) != 0
    self.init(
      owner: found.stx_uid, group: found.stx_gid, mode: UInt32(found.stx_mode) & 0o7777,
      size: found.stx_size, links: UInt64(found.stx_nlink), isRegular: kind == S_IFREG,
      isDirectory: kind == S_IFDIR,
      isSocket: kind == S_IFSOCK, modified: found.stx_mtime.tv_sec,
      changed: found.stx_ctime.tv_sec,
      born: hasBirth ? found.stx_btime.tv_sec : 0)
  }
}

/// Splits a text into lines, also at the line ends of Windows, which sudo and sshd accept too: each
/// of those is one `Character`.
func linesOf(_ text: String) -> [Substring] {
  text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
}
