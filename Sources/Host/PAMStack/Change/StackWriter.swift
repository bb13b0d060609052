import Glibc
import SallyportCore
import SallyportSupport

/// Writes a changed file of pam.d. The file is replaced in one step, so that account, session and
/// auth lines change together: even if the command is killed, a login sees either the old stacks or
/// the new ones. The caller must hold the lock (`PamLock`).
package struct StackWriter {
  let directory: StackDirectory
  /// The date in the name of the backup, as in 2026-11-21.
  let date: String

  package init(directory: StackDirectory, date: String) {
    (self.directory, self.date) = (directory, date)
  }

  /// What writing a file left beside it.
  package struct Written: Equatable {
    /// Where the old file is kept; nil if it is not.
    package var backup: String?
    /// Backups that were removed, since they had the same content as the file has now.
    package var removed: [String] = []
  }

  package func write(_ change: StackChange) throws(StackRefusal) -> Written {
    let path = change.path
    let target = try resolved(path)
    let parent = try filing(path) { () throws(SystemError) in
      try OpenFile(parentDirectory(of: target), O_RDONLY | O_DIRECTORY)
    }
    guard directory.content(of: path) == change.before?.bytes else {
      throw .changedMeanwhile(path: path)
    }
    var written = Written()
    if let before = change.before, before.ours.isEmpty {
      written.backup = try keep(before, of: path, parent)
    }
    try put(change.after, at: target, path, isNew: change.before == nil)
    try filing(path) { () throws(SystemError) in try parent.sync() }
    if let after = change.after ?? change.before?.withoutOurs, after.ours.isEmpty {
      written.removed = removeBackups(of: path, sayingOnly: after.bytes)
    }
    return written
  }

  private func put(_ file: ServiceFile?, at target: String, _ path: String, isNew: Bool)
    throws(StackRefusal)
  {
    if let file {
      let temporary = try filing(path) { () throws(SystemError) in try freedName(beside: target) }
      try swap(
        file.bytes, to: target, through: temporary, path, isFresh: isNew,
        like: isNew ? nil : target)
    } else {
      if !removeFile(target) { throw .system(path: path, errno: errno) }
    }
  }

  /// Keeps the old content in a backup; an older backup with the same content is used instead.
  private func keep(_ file: ServiceFile, of path: String, _ parent: borrowing OpenFile)
    throws(StackRefusal) -> String
  {
    // Without the date, so that what a kill left is found on another day too.
    let temporary = try filing(path) { () throws(SystemError) in
      try freedName(beside: directory.root + path)
    }
    for number in 1...99 {
      let name = "\(path).before-sallyport-\(date)\(number == 1 ? "" : "-\(number)")"
      if let there = directory.content(of: name) {
        if there == file.bytes { return name }
        continue
      }
      try swap(
        file.bytes, to: directory.root + name, through: temporary, name, isFresh: true,
        like: directory.root + path)
      try filing(name) { () throws(SystemError) in try parent.sync() }
      return name
    }
    throw .system(path: path, errno: EEXIST)
  }

  private func removeBackups(of path: String, sayingOnly content: [UInt8]) -> [String] {
    let (parent, name) = (parentDirectory(of: path), path.split(separator: "/").last ?? "")
    return directory.names(in: parent).filter { $0.hasPrefix("\(name).before-sallyport-") }
      .map { "\(parent)/\($0)" }.sorted()
      .filter { backup in
        directory.content(of: backup) == content && removeFile(directory.root + backup)
      }
  }

  private func swap(
    _ bytes: [UInt8], to target: String, through temporary: String, _ path: String, isFresh: Bool,
    like: String?
  ) throws(StackRefusal) {
    try filing(path) { () throws(SystemError) in
      let ownership = try like.map { like throws(SystemError) in
        let facts = try facts(of: like, following: true)
        return Ownership(like: facts, mode: facts.permissions)
      }
      try putFile(
        target, through: temporary, isNew: isFresh, ownership ?? Ownership(mode: 0o644), bytes)
    }
  }

  private func filing<Value: ~Copyable>(
    _ path: String, _ step: () throws(SystemError) -> Value
  ) throws(StackRefusal) -> Value {
    try rethrow(step) { StackRefusal.system(path: path, errno: $0.number) }
  }

  /// The path without symbolic links; unchanged if it does not exist.
  private func resolved(_ path: String) throws(StackRefusal) -> String {
    // SAFETY: realpath(3) allocates the C string; it is copied, then freed.
    guard let text = unsafe realpath(directory.root + path, nil) else {
      if errno == ENOENT { return directory.root + path }
      throw .system(path: path, errno: errno)
    }
    defer { unsafe free(text) }
    return unsafe String(cString: text)
  }
}
