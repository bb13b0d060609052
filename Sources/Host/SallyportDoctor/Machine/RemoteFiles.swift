import SallyportSupport

/// The file systems of this machine that others serve. A home on one that does not answer would
/// hold up who reads in it for ever.
final class RemoteFiles {
  private struct Mount {
    let place, type: String

    /// Whether a server, or a program, answers for it.
    var isRemote: Bool {
      ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "lustre", "autofs", "fuse"].contains(
        type)
        || type.hasPrefix("fuse.")
    }
  }

  /// nil: not read yet.
  private var mounts: [Mount]?
  /// By mount, or by directory where each may be one of its own.
  private var silent: [String: Bool] = [:]

  /// In seconds, for each file system.
  private static let patience = "2"

  /// Whether the file system of a path does not answer. It is asked once, by a program, which can
  /// be ended.
  func isSilent(_ path: String, on machine: Machine) -> Bool {
    let all = mounts ?? RemoteFiles.mounts(machine.text("/proc/self/mountinfo").value ?? "")
    mounts = all
    let holding = all.filter {
      path == $0.place || path.hasPrefix($0.place + "/") || $0.place == "/"
    }
    // Of two in one place the later hides the other.
    guard let mount = holding.max(by: { $0.place.utf8.count < $1.place.utf8.count }),
      let last = holding.last(where: { $0.place == mount.place }), last.isRemote
    else { return false }
    let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? path
    let key = last.type == "autofs" ? directory : last.place
    if let known = silent[key] { return known }
    let done = machine.run([
      "timeout", "-s", "KILL", RemoteFiles.patience, "stat", "-f", "--", directory,
    ])
    // Ended by the signal; another status is an answer, as that there is no such directory.
    let isSilent = done.value.map { $0.status == 137 || $0.status == 124 } ?? (done != .absent)
    silent[key] = isSilent
    return isSilent
  }

  /// Of `proc_pid_mountinfo(5)`.
  private static func mounts(_ text: String) -> [Mount] {
    linesOf(text).compactMap { line -> Mount? in
      let words = line.split(separator: " ")
      guard let dash = words.firstIndex(of: "-"), words.count > dash + 1, words.count > 4 else {
        return nil
      }
      let place = String(words[4]).replacing("\\040", with: " ").replacing("\\134", with: "\\")
      return Mount(place: place, type: String(words[dash + 1]))
    }
  }
}
