package import ArgumentParser
import Glibc
import OneTimePassword
import SallyportCore
package import SallyportSupport
import SallyportSystem

/// A subcommand. `run(in:)` does the work; its environment is an argument that tests replace.
package protocol Verb: ParsableCommand {
  associatedtype Shared: SharedOptions
  /// The options that this verb shares with others.
  var shared: Shared { get }
  func run(in context: Context) throws(CommandError)
  /// As `run`, but returns the exit status. Doctor's depends on what it found.
  func status(in context: Context) throws(CommandError) -> Int32
  /// The user that the verb is about, if it is about one.
  func user(in context: Context) -> String?
  /// How the verb was called, for messages.
  func invocation(in context: Context) -> Invocation
}

extension Verb {
  package func status(in context: Context) throws(CommandError) -> Int32 {
    try run(in: context)
    return Sysexit.done.rawValue
  }

  package func user(in context: Context) -> String? { shared.user(in: context) }

  package func invocation(in context: Context) -> Invocation {
    Invocation(verb: Self._commandName, user: user(in: context), store: shared.storeOptions.store)
  }
}

/// Options that several verbs share.
package protocol SharedOptions: ParsableArguments {
  var storeOptions: StoreOptions { get }
  func user(in context: Context) -> String?
}

/// The options of every verb.
package struct StoreOptions: SharedOptions {
  @Option(help: ArgumentHelp("Use the store in this directory.", valueName: "dir"))
  package var store: String?

  @Flag(help: "Print JSON and nothing else.")
  var json = false

  package init() {}

  package var storeOptions: StoreOptions { self }
  package func user(in context: Context) -> String? { nil }

  /// The path of the store. A relative `--store` is relative to the working directory.
  var path: String {
    guard let store else { return Store.usualRoot }
    return absolutePath(store)
  }
}

/// The option for users without an account.
struct UserOptions: ParsableArguments {
  @Flag(help: "Continue even if there is no account of that name.")
  var allowMissing = false
}

/// The option of the verbs that apply the policy.
package struct PolicyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Use this policy file.", valueName: "file"))
  package var conf: String?

  package init() {}
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
    self = AlgorithmOption.allCases.first { $0.algorithm == algorithm } ?? .sha1
  }
}

extension QRChoice: ExpressibleByArgument {}

extension Digits: ExpressibleByArgument {}

extension Label: ExpressibleByArgument {
  package init?(argument: String) { self.init(Array(argument.utf8)) }
  package var defaultValueDescription: String { text }
}

/// From the root on; as it is where the working directory has no path.
func absolutePath(_ path: String) -> String {
  if path.utf8.first == UInt8(ascii: "/") { return path }
  // SAFETY: the C string is ours; it is copied and then freed.
  guard let directory = unsafe getcwd(nil, 0) else { return "./\(path)" }
  defer { unsafe free(directory) }
  let text = unsafe String(cString: directory)
  return text.hasPrefix("/") ? "\(text)/\(path)" : "./\(path)"
}
