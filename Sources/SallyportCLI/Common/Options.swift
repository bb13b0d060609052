import ArgumentParser
import Glibc
import OneTimePassword
import SallyportCore
import SallyportSystem
import SallyportText

/// A subcommand. `run(in:)` does the work; what surrounds it is an argument, so that tests can
/// bring their own.
protocol Verb: ParsableCommand {
  associatedtype Shared: SharedOptions
  /// What it can be told as other verbs can.
  var shared: Shared { get }
  func run(in context: Context) throws(CommandError)
  /// As `run`, for a verb whose exit status says more than that it is done.
  func status(in context: Context) throws(CommandError) -> Int32
  /// Whom it is about, where it is about one.
  func user(in context: Context) -> String?
  /// What messages say of it.
  func invocation(in context: Context) -> Invocation
}

extension Verb {
  func status(in context: Context) throws(CommandError) -> Int32 {
    try run(in: context)
    return Sysexit.done.rawValue
  }

  func user(in context: Context) -> String? { shared.user(in: context) }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: Self._commandName, user: user(in: context), store: shared.storeOptions.store)
  }
}

/// The options that a verb has in common with others.
protocol SharedOptions: ParsableArguments {
  var storeOptions: StoreOptions { get }
  func user(in context: Context) -> String?
}

/// Options of every verb.
struct StoreOptions: SharedOptions {
  @Option(help: ArgumentHelp("Use the store in this directory.", valueName: "dir"))
  var store: String?

  @Flag(help: "Print JSON and nothing else.")
  var json = false

  var storeOptions: StoreOptions { self }
  func user(in context: Context) -> String? { nil }

  /// Where the store is; a relative `--store` starts at the working directory.
  var path: String {
    guard let store else { return Store.usualRoot }
    return store.utf8.first == UInt8(ascii: "/") ? store : "\(workingDirectory())/\(store)"
  }
}

/// What to do about a user without an account.
struct UserOptions: ParsableArguments {
  @Flag(help: "Continue even if there is no account of that name.")
  var allowMissing = false
}

/// Options of the verbs that go by the policy.
struct PolicyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Use this policy file.", valueName: "file"))
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

extension Digits: ExpressibleByArgument {}

extension Label: ExpressibleByArgument {
  package init?(argument: String) { self.init(Array(argument.utf8)) }
  package var defaultValueDescription: String { text }
}

/// The working directory; `.` where it has no path.
private func workingDirectory() -> String {
  // SAFETY: the C string is ours, is copied and given back.
  guard let path = unsafe getcwd(nil, 0) else { return "." }
  defer { unsafe free(path) }
  let text = unsafe String(cString: path)
  return text.hasPrefix("/") ? text : "."
}
