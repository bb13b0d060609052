import Glibc
import SallyportFiles

/// The files of pam.d and the modules of a machine: the one place here that reads anything.
package struct StackDirectory: Sendable {
  /// In front of every path; empty on this machine.
  package let root: String

  package init(root: String = "") { self.root = root }

  /// A file of pam.d is never as long.
  private static let longest = 1 << 20

  /// With the rules of the machine's libpam: Debian's are not everybody's.
  package var files: StackFiles {
    let read: (String) -> [UInt8]? = { content(of: $0) }
    return exists("/etc/debian_version") ? .debian(read) : .upstream(read)
  }

  /// Whether libpam would not find the module. False where its directory is not known.
  package func isMissing(_ entry: StackEntry) -> Bool {
    if entry.module.contains("$ISA") { return false }
    if entry.module.hasPrefix("/") { return !exists(entry.module) }
    guard let modules else { return false }
    return !exists("\(modules)/\(entry.module)")
  }

  /// The directory from which libpam takes modules; nil where it is none of the usual ones.
  package var modules: String? {
    let triplet = "\(StackDirectory.machine)-linux-gnu"
    let usual = [
      "/usr/lib/\(triplet)/security", "/lib/\(triplet)/security", "/usr/lib64/security",
      "/lib64/security", "/usr/lib/security", "/lib/security",
    ]
    return usual.first { exists("\($0)/pam_unix.so") || exists("\($0)/pam_permit.so") }
  }

  #if arch(arm64)
    private static let machine = "aarch64"
  #elseif arch(riscv64)
    private static let machine = "riscv64"
  #else
    private static let machine = "x86_64"
  #endif

  /// The names in the directories of services, without what editors and packages leave behind.
  package func services() -> [String] {
    let names = Set(files.directories.flatMap(names))
    return names.filter { !$0.contains(".") && !$0.hasSuffix("~") }.sorted()
  }

  /// What stands in a directory; nothing where it cannot be read.
  func names(in path: String) -> [String] {
    var names: [String] = []
    // SAFETY: the stream is ours and open; a name is a C string that lives until the next one.
    guard let stream = unsafe opendir(root + path) else { return [] }
    while let entry = unsafe readdir(stream) {
      unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        names.append(unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
      }
    }
    unsafe closedir(stream)
    return names.filter { $0 != "." && $0 != ".." }
  }

  func exists(_ path: String) -> Bool {
    // SAFETY: the C string lives for the call.
    unsafe access(root + path, F_OK) == 0
  }

  /// What fopen(3) and fgets(3) would find; links are followed. nil where it cannot be opened or is
  /// longer than any; nothing of what is not a regular file.
  func content(of path: String) -> [UInt8]? {
    do throws(SystemError) {
      let file = try OpenFile(root + path, O_RDONLY | O_NONBLOCK)
      guard try file.facts().isRegular else { return [] }
      let content = try file.bytes(StackDirectory.longest + 1)
      return content.count <= StackDirectory.longest ? content : nil
    } catch {
      return nil
    }
  }
}
