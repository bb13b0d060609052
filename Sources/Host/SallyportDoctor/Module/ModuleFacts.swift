import CCommand
import Glibc
import OneTimePassword
import PAMStack
import SallyportSupport

/// A module file that a stack names.
struct ModuleFacts {
  /// The path from which libpam would load it.
  let path: String
  /// The first line that names it.
  var location: FileLocation?
  var file: Probe<FileFacts>
  /// The directories above it that users other than root can change.
  var openDirectories: [String] = []
  /// The machine types in the ELF headers of the module and of this command, as `elfMachine`
  /// returns them.
  var machines: (module: UInt16, command: UInt16) = (0, 0)
  /// Why it cannot be loaded; nil if it can be.
  var refusal: String?
  /// Whether libcrypto computes what codes are made of, as OpenSSL is configured here.
  var makesCodes = true
  /// The version of the package or of the file; nil if unknown.
  var version: String?

  static let name = "pam_sallyport.so"

  /// libpam's directory of modules: of the possible ones, the one that has pam_unix.so.
  static func directory(of machine: Machine) -> String? {
    let patterns = [
      "/usr/lib/*-linux-gnu*/security/pam_unix.so", "/lib/*-linux-gnu*/security/pam_unix.so",
      "/usr/lib64/security/pam_unix.so", "/lib64/security/pam_unix.so",
      "/usr/lib/security/pam_unix.so", "/lib/security/pam_unix.so",
    ]
    let all = patterns.flatMap { machine.paths($0) }
    let own = elfMachine(of: Machine(), "/proc/self/exe")
    // With several architectures, the directory of this one.
    let found = all.first { elfMachine(of: machine, $0) == own } ?? all.first
    return found.map { String($0.dropLast("/pam_unix.so".count)) }
  }

  /// e_machine, with the ELF class in its upper byte; 0 if it is not an ELF file of this byte
  /// order.
  fileprivate static func elfMachine(of machine: Machine, _ path: String) -> UInt16 {
    guard let head = machine.bytes(path, limit: 20).value, head.count >= 20,
      head.prefix(4).elementsEqual([0x7f, 0x45, 0x4c, 0x46])
    else { return 0 }
    return UInt16(head[18]) | UInt16(head[19]) << 8 | UInt16(head[4]) << 12
  }
}

extension ModuleFacts {
  /// `written` is the module as spelled on the line; a bare name is in libpam's directory.
  static func path(_ written: String, in directory: String?) -> String {
    written.hasPrefix("/") ? written : "\(directory ?? "/usr/lib/security")/\(written)"
  }

  init(
    of machine: Machine, _ path: String, at location: FileLocation?, _ packages: PackageTool?
  ) {
    self.path = path
    self.location = location
    file = machine.file(path)
    guard case .seen(let facts) = file, facts.isRegular else { return }
    machines = (
      ModuleFacts.elfMachine(of: machine, path),
      ModuleFacts.elfMachine(of: Machine(), "/proc/self/exe")
    )
    openDirectories = ModuleFacts.directories(above: path).filter { directory in
      guard let facts = machine.file(directory).value else { return false }
      return facts.owner != 0 || (facts.isOthersToWrite && facts.mode & 0o1000 == 0)
    }
    // A file that others can write is not loaded here; it is an error already.
    if facts.owner == 0, !facts.isOthersToWrite {
      refusal = machine.refusal(of: machine.root + path, "pam_sm_authenticate")
    }
    makesCodes = ModuleFacts.computesKnownCode
    let answer = packages.flatMap { machine.answer($0.versionOfModule) } ?? ""
    version = answer.isEmpty ? nil : answer
  }

  /// By the first value of RFC 4226, appendix D.
  private static var computesKnownCode: Bool {
    guard let secret = Secret(Array("12345678901234567890".utf8)) else { return false }
    do throws(CryptoError) {
      let codes = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
      return try codes.code(at: 0) == 755_224
    } catch {
      return false
    }
  }

  private static func directories(above path: String) -> [String] {
    var (directories, rest) = ([String](), path.split(separator: "/").dropLast())
    while !rest.isEmpty {
      directories.append("/" + rest.joined(separator: "/"))
      rest = rest.dropLast()
    }
    return directories
  }
}

extension Machine {
  /// Why a library, given by path or name, cannot be loaded; nil if it can be.
  func refusal(of library: String, _ function: String) -> String? {
    do throws(SystemError) {
      return try ProgramRun.obstacle(toLoading: library, function)
    } catch {
      return errnoText(error.number)
    }
  }
}
