import Glibc
import SallyportSupport

/// The PAM configuration and modules of a machine: the only type of this target that reads files.
package struct StackDirectory: Sendable {
  /// Put in front of every path; empty on this machine.
  package let root: String

  /// What planned changes give these files, by path; nil for a file that they remove.
  private var planned: [String: [UInt8]?] = [:]

  /// Of the libpam that is installed.
  let rules: LibpamRules

  package init(root: String = "") {
    self.root = root
    rules = StackDirectory.rules(under: root) ?? StackDirectory.rules(under: "") ?? .before16
  }

  /// The library tells its version nowhere, but since 1.6 it reads without fgets(3). nil where no
  /// libpam is found.
  private static func rules(under root: String) -> LibpamRules? {
    guard let modules = modules(under: root),
      let file = try? OpenFile(root + modules + "/../libpam.so.0", O_RDONLY | O_NONBLOCK),
      let library = try? file.bytes(longest)
    else { return nil }
    return library.contains("fgets".utf8) ? .before16 : .since16
  }

  /// The same files with these bytes in one of them; nil removes it.
  func assuming(_ bytes: [UInt8]?, at path: String) -> StackDirectory {
    var directory = self
    directory.planned[path] = .some(bytes)
    return directory
  }

  /// In bytes. No file of pam.d is this long.
  private static let longest = 1 << 20

  /// With the rules of the machine's libpam, which differ between Debian and others.
  package var files: StackFiles {
    let read: (String) -> [UInt8]? = { content(of: $0) }
    return exists("/etc/debian_version") ? .debian(rules, read) : .upstream(rules, read)
  }

  /// The stacks of a service.
  package func stack(of service: String) -> ServiceStack {
    StackParser.parse(service: service, files)
  }

  /// What the walk through the stacks of a service finds.
  package func analysis(of service: String) -> StackAnalysis { analysis(stack(of: service)) }

  package func analysis(_ stack: ServiceStack) -> StackAnalysis {
    StackAnalysis(stack, isMissing: isMissing)
  }

  /// Whether libpam would not find the module. False if the directory of modules is not known.
  package func isMissing(_ entry: StackEntry) -> Bool {
    if entry.module.contains("$ISA") { return false }
    if entry.module.hasPrefix("/") { return !exists(entry.module) }
    guard let modules else { return false }
    return !exists("\(modules)/\(entry.module)")
  }

  /// libpam's directory of modules; nil if it is none of the usual ones.
  package var modules: String? { StackDirectory.modules(under: root) }

  private static func modules(under root: String) -> String? {
    let triplet = "\(StackDirectory.machine)-linux-gnu"
    let usual = [
      "/usr/lib/\(triplet)/security", "/lib/\(triplet)/security", "/usr/lib64/security",
      "/lib64/security", "/usr/lib/security", "/lib/security",
    ]
    return usual.first { directory in
      ["pam_unix.so", "pam_permit.so"].contains { exists("\(root)\(directory)/\($0)") }
    }
  }

  #if arch(arm64)
    private static let machine = "aarch64"
  #elseif arch(riscv64)
    private static let machine = "riscv64"
  #else
    private static let machine = "x86_64"
  #endif

  /// The names of all services, without the files that editors and packages leave behind.
  package func services() -> [String] {
    let names = Set(files.directories.flatMap(names))
    return names.filter { !$0.contains(".") && !$0.hasSuffix("~") }.sorted()
  }

  /// The names in a directory; empty if it cannot be read.
  func names(in path: String) -> [String] {
    var names: [String] = []
    // SAFETY: the stream is ours and open; a name is a C string that lives until the next readdir.
    guard let stream = unsafe opendir(root + path) else { return [] }
    while let entry = unsafe readdir(stream) {
      unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        names.append(unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
      }
    }
    unsafe closedir(stream)
    return names.filter { $0 != "." && $0 != ".." }
  }

  func exists(_ path: String) -> Bool { StackDirectory.exists(root + path) }

  private static func exists(_ path: String) -> Bool {
    // SAFETY: the C string lives for the call.
    unsafe access(path, F_OK) == 0
  }

  /// The bytes that fopen(3) and fgets(3) would read; symbolic links are followed. Returns nil if
  /// the file cannot be opened or is too long, and no bytes if it is not a regular file.
  func content(of path: String) -> [UInt8]? {
    if let content = planned[path] { return content }
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
