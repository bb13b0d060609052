import Glibc
import PAMStack
import SallyportSupport

/// sshd's configuration with another file of ours, for `sshd -T -f`. It is gone with its last use.
private final class SSHCopy {
  private let directory: String
  /// Of the copies, what they stand for.
  private let originals: [String: String]
  let path: String

  /// Of the file that sshd reads first, with the drop-in as `machine` has it. `root` is where the
  /// machine's files are.
  init(of machine: Machine, root: String) throws(SystemError) {
    var name = Array("\(root)/run/sallyport-sshd-XXXXXX".utf8CString)
    // SAFETY: the buffer ends with a zero, and lives for the call.
    let isMade = unsafe mkdtemp(&name) != nil
    if !isMade { throw .last }
    directory = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let (first, dropIn) = (SSHConfiguration.first(of: machine), SSHStage.path)
    path = "\(directory)/sshd_config"
    let ours = "\(directory)/00-sallyport.conf"
    originals = [path: first, ours: dropIn]
    let text = machine.text(first).value ?? ""
    let lines = linesOf(text).map { SSHCopy.line($0, of: machine, ours) }
    try createFile(path, Array(lines.joined(separator: "\n").utf8))
    if let text = machine.text(dropIn).value { try createFile(ours, Array(text.utf8)) }
  }

  deinit {
    for path in originals.keys { removeFile(path) }
    // SAFETY: the C string lives for the call.
    _ = unsafe rmdir(directory)
  }

  /// An Include that reads our file names all its files, and the copy of ours for it.
  private static func line(_ line: Substring, of machine: Machine, _ ours: String) -> String {
    let words = sshWords(line)
    guard words.first?.lowercased() == "include" else { return String(line) }
    let patterns = words.dropFirst().map { SSHConfiguration.path(of: $0) }
    guard patterns.contains(where: { Machine.matches(SSHStage.path, $0) }) else {
      return String(line)
    }
    let files = patterns.flatMap { machine.paths($0) }
      .map { $0 == SSHStage.path ? ours : machine.root + $0 }
    return files.isEmpty ? "" : "Include " + files.map { "\"\($0)\"" }.joined(separator: " ")
  }

  /// As sshd would say it of the files themselves.
  func restored(_ text: String) -> String {
    originals.reduce(text) { $0.replacing($1.key, with: $1.value) }
  }
}

extension Machine {
  /// The machine as it will be with this text in our file of sshd's configuration; nil: without
  /// the file.
  package func assuming(sshFile text: String?) -> Machine {
    var changed = self
    changed.planned = (SSHStage.path, text)
    let made = Result { () throws(SystemError) in try SSHCopy(of: changed, root: root) }
    changed.run = { [run] words in
      guard words.starts(with: ["sshd", "-T"]) else { return run(words) }
      switch made {
      case .failure(let error): return .unseen("\(SSHStage.path): \(errnoText(error.number))")
      case .success(let copy):
        let done = run(["sshd", "-T", "-f", copy.path] + words.dropFirst(2))
        return done.map { done in
          var told = done
          told.errors = copy.restored(done.errors)
          return told
        }
      }
    }
    return changed
  }
}
