import ArgumentParser
import CSystem
import OneTimePassword
import SallyportSystem
import SallyportText

/// A subcommand. `run(in:)` does the work; what surrounds it is an argument, so that tests can
/// bring their own.
protocol Verb: ParsableCommand {
  func run(in context: Context) throws(CommandError)
  /// As `run`, for a verb whose exit status says more than that it is done.
  func status(in context: Context) throws(CommandError) -> Int32
  var store: StoreOptions { get }
  /// Whom it is about, where it is about one.
  func user(in context: Context) -> String?
}

extension Verb {
  func status(in context: Context) throws(CommandError) -> Int32 {
    try run(in: context)
    return Sysexit.done.rawValue
  }

  func place(in context: Context) -> Invocation {
    Invocation(verb: Self._commandName, user: user(in: context), store: store.store)
  }
}

/// Options of every verb.
struct StoreOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Use the store in this directory.", valueName: "dir"))
  var store: String?

  @Flag(help: "Print JSON and nothing else.")
  var json = false

  /// Where the store is; a relative `--store` starts at the working directory.
  var path: String {
    guard let store else { return Store.usualRoot }
    return store.utf8.first == UInt8(ascii: "/") ? store : "\(workingDirectory())/\(store)"
  }
}

/// Options of the verbs that are about one user.
struct UserOptions: ParsableArguments {
  @Flag(help: "Go on where there is no account of that name.")
  var allowMissing = false
}

/// Options of the verbs that go by the policy.
struct PolicyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Go by this policy file.", valueName: "file"))
  var conf: String?
}

enum TypeOption: String, CaseIterable, ExpressibleByArgument {
  case totp, hotp
}

enum AlgorithmOption: String, CaseIterable, ExpressibleByArgument {
  case sha1, sha256, sha512

  var algorithm: HashAlgorithm {
    switch self {
    case .sha1: .sha1
    case .sha256: .sha256
    case .sha512: .sha512
    }
  }

  init(_ algorithm: HashAlgorithm) {
    switch algorithm {
    case .sha1: self = .sha1
    case .sha256: self = .sha256
    case .sha512: self = .sha512
    }
  }
}

extension QRChoice: ExpressibleByArgument {}

/// The working directory; `.` where it has no path.
private func workingDirectory() -> String {
  // SAFETY: the buffer has as many bytes as are said, and ends in NUL where there is a path.
  unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { path in
    guard let base = path.baseAddress, unsafe working_directory(base, path.count) else {
      return "."
    }
    return unsafe String(cString: base)
  }
}
