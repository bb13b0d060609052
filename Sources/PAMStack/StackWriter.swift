import CSystem
import SallyportCore

#if canImport(Glibc)
  import Glibc
#endif

/// Puts a changed file of pam.d in its place. The file is replaced in one step, so that account,
/// session and auth lines come and go together: whatever ends the command, a login finds the old
/// stacks or the new ones.
package struct StackWriter {
  let directory: StackDirectory
  /// For the name of the backup: 2026-11-21.
  let date: String

  package init(directory: StackDirectory, date: String) {
    (self.directory, self.date) = (directory, date)
  }

  /// What a change of a file left beside it.
  package struct Written: Equatable {
    /// Where the old file is kept now.
    package var backup: String?
    /// Backups that say the same as the file does now, and are gone.
    package var removed: [String] = []
  }

  package func write(_ change: StackChange) throws(StackRefusal) -> Written {
    let path = change.path
    let target = try resolved(path)
    // SAFETY: the C string lives for the call.
    let lock = unsafe swap_lock(parent(target))
    guard lock >= 0 else {
      throw lock == -EWOULDBLOCK ? .busy(path: path) : .system(path: path, errno: -lock)
    }
    defer { swap_unlock(lock) }
    guard directory.content(of: path) == change.before?.bytes else {
      throw .changedMeanwhile(path: path)
    }
    var written = Written()
    if let before = change.before, before.ours.isEmpty {
      written.backup = try keep(before, of: path, lock)
    }
    try put(change.after, at: target, path, isNew: change.before == nil)
    try check(swap_sync(lock), path)
    if let after = change.after ?? change.before?.withoutOurs, after.ours.isEmpty {
      written.removed = removeBackups(of: path, sayingOnly: after.bytes)
    }
    return written
  }

  private func put(_ file: ServiceFile?, at target: String, _ path: String, isNew: Bool)
    throws(StackRefusal)
  {
    if let file {
      try swap(file.bytes, to: target, path, isFresh: isNew, like: isNew ? nil : target)
    } else {
      try check(unsafe swap_remove(target), path)
    }
  }

  /// The old content under a name of its own; an older backup that says the same will do.
  private func keep(_ file: ServiceFile, of path: String, _ lock: Int32) throws(StackRefusal)
    -> String
  {
    for number in 1...99 {
      let name = "\(path).before-sallyport-\(date)\(number == 1 ? "" : "-\(number)")"
      if let there = directory.content(of: name) {
        if there == file.bytes { return name }
        continue
      }
      try swap(
        file.bytes, to: directory.root + name, name, isFresh: true, like: directory.root + path)
      try check(swap_sync(lock), name)
      return name
    }
    throw .system(path: path, errno: EEXIST)
  }

  private func removeBackups(of path: String, sayingOnly content: [UInt8]) -> [String] {
    let (parent, name) = (parent(path), path.split(separator: "/").last ?? "")
    return directory.names(in: parent).filter { $0.hasPrefix("\(name).before-sallyport-") }
      .map { "\(parent)/\($0)" }.sorted()
      .filter { backup in
        guard directory.content(of: backup) == content else { return false }
        // SAFETY: the C string lives for the call.
        return unsafe swap_remove(directory.root + backup) == 0
      }
  }

  private func swap(
    _ bytes: [UInt8], to target: String, _ path: String, isFresh: Bool, like: String?
  ) throws(StackRefusal) {
    let name = target.split(separator: "/").last ?? ""
    let temporary = "\(parent(target))/.\(name).sallyport-new"
    // SAFETY: all pointers live for the call, and the bytes are as many as is said.
    let problem = unsafe bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress else { return EINVAL }
      return unsafe swap_in(temporary, target, isFresh, like, base, buffer.count)
    }
    try check(problem, path)
  }

  private func check(_ number: Int32, _ path: String) throws(StackRefusal) {
    if number != 0 { throw .system(path: path, errno: number) }
  }

  private func resolved(_ path: String) throws(StackRefusal) -> String {
    var text = ""
    // SAFETY: the buffer has PATH_MAX bytes, and ends in NUL where there is no problem.
    let problem = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) {
      buffer in
      guard let base = buffer.baseAddress else { return ENOMEM }
      let problem = unsafe swap_resolve(directory.root + path, base)
      if problem == 0 { text = unsafe String(cString: base) }
      return problem
    }
    try check(problem, path)
    return text
  }

  private func parent(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }
}
