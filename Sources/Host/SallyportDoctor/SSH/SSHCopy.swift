import CCommand
import Glibc
import PAMStack
import SallyportSupport

/// sshd's configuration with another file of ours, for `sshd -T -f`: in memory, so that nothing is
/// left of it where the command is killed.
private final class SSHCopy {
  private let machine: Machine
  private var descriptors: [Int32] = []
  /// Of the copies, what they stand for.
  private var originals: [String: String] = [:]
  private(set) var path = ""

  /// Of the file that sshd reads first, with the drop-in as `machine` has it.
  init(of machine: Machine) throws(SystemError) {
    self.machine = machine
    path = try copy(SSHConfiguration.first(of: machine), depth: 0)
  }

  deinit { for descriptor in descriptors { close(descriptor) } }

  /// The path by which sshd reads the file, or a copy of it where our file is among what it
  /// includes.
  private func copy(_ file: String, depth: Int) throws(SystemError) -> String {
    let text = machine.text(file).value ?? ""
    if file == SSHStage.path { return try put(text, as: file) }
    var lines: [String] = []
    var isChanged = depth == 0
    for line in linesOf(text) {
      let changed = try depth < SSHConfiguration.deepest ? include(line, depth: depth) : nil
      isChanged = isChanged || changed != nil
      lines.append(changed ?? String(line))
    }
    return isChanged ? try put(lines.joined(separator: "\n"), as: file) : machine.root + file
  }

  /// An Include that leads to our file names all its files, or their copies; nil for another line.
  private func include(_ line: Substring, depth: Int) throws(SystemError) -> String? {
    let words = sshWords(line)
    guard words.first?.lowercased() == "include" else { return nil }
    let patterns = words.dropFirst().map { SSHConfiguration.path(of: $0) }
    let files = patterns.flatMap { machine.paths($0) }
    var read: [String] = []
    for file in files { read.append(try copy(file, depth: depth + 1)) }
    guard
      read != files.map({ machine.root + $0 })
        || patterns.contains(where: { Machine.matches(SSHStage.path, $0) })
    else { return nil }
    return read.isEmpty ? "" : "Include " + read.map { "\"\($0)\"" }.joined(separator: " ")
  }

  private func put(_ text: String, as file: String) throws(SystemError) -> String {
    // SAFETY: the C string lives for the call.
    let descriptor = unsafe memory_file("sshd_config")
    if descriptor < 0 { throw .last }
    descriptors.append(descriptor)
    // SAFETY: the bytes live for the call.
    try unsafe Array(text.utf8).withUnsafeBytes { unsafe writeAll($0, to: descriptor) }.get()
    let path = "/proc/\(getpid())/fd/\(descriptor)"
    originals[path] = file
    return path
  }

  /// As sshd would say it of the files themselves.
  func restored(_ text: String) -> String {
    // The longest first: one may begin another.
    originals.sorted { $0.key.utf8.count > $1.key.utf8.count }.reduce(text) {
      $0.replacing($1.key, with: $1.value)
    }
  }
}

extension Machine {
  /// The machine as it will be with this text in our file of sshd's configuration; nil: without
  /// the file.
  package func assuming(sshFile text: String?) -> Machine {
    var changed = self
    changed.planned = (SSHStage.path, text)
    let made = Result { () throws(SystemError) in try SSHCopy(of: changed) }
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
