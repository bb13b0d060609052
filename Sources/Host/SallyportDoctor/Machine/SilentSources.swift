import CCommand
import Glibc
import SallyportSupport

/// The directories of nsswitch.conf(5), one of which may take a question and never answer. The C
/// library would wait for it each time that a name is not found before it.
final class SilentSources {
  /// nil: not asked yet.
  private var known: [String]?

  /// In seconds.
  static let patience = 5

  /// The directories of the first database that does not answer; empty if all do. They are asked
  /// once, by a program, which can be ended. Where they do not answer, this process asks none of
  /// them from then on, so that their names are not found.
  func leave(on machine: Machine) -> [String] {
    if let known { return known }
    let silent = machine.root.isEmpty ? SilentSources.silent(on: machine) : []
    known = silent
    guard !silent.isEmpty else { return silent }
    for database in ["passwd", "group", "shadow"] {
      let sources = NameSources(of: database, on: machine)
      let local = (sources.sources ?? []).filter { sources.directoryNames?.contains($0) == false }
      let words = local.isEmpty ? "files" : local.joined(separator: " ")
      // SAFETY: the C library copies both texts.
      unsafe names_ask(database, words)
      if database == "group" { unsafe names_ask("initgroups", words) }
    }
    return silent
  }

  private static func silent(on machine: Machine) -> [String] {
    for database in ["passwd", "group"] {
      let directories = NameSources(of: database, on: machine).directoryNames ?? []
      if directories.isEmpty { continue }
      // One that no cache has.
      let name = "sallyport-\(UInt32.random(in: 0 ... .max))"
      let done = machine.run(["timeout", "-s", "KILL", "\(patience)", "getent", database, name])
      // Ended by the signal; another status is an answer.
      if done.value.map({ $0.status == 137 || $0.status == 124 }) == true { return directories }
    }
    return []
  }
}
