import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// `sallyport import uri`
struct ImportURI: ImportVerb {
  static let configuration = CommandConfiguration(
    commandName: "uri",
    abstract: "Import otpauth URIs, of one user or of many, or what an authenticator app exported.",
    discussion: """
      With --user the file may also be the plain export of Aegis, 2FAS, andOTP, FreeOTP+, \
      Bitwarden, Ente Auth or KeePassXC (CSV, XML), or hold the otpauth-migration lines of Google \
      Authenticator's pictures.
      """)

  @Argument(help: "The file, a URI on each line, or an app's export; - for standard input.")
  var file = "-"

  @Option(
    help: ArgumentHelp(
      "The user. Without it, each line begins with a user name.", valueName: "name"))
  var user: String?

  @Option(
    help: ArgumentHelp("With --user: only this entry of the file. Can be repeated.", valueName: "n")
  )
  var entry: [Int] = []

  @Flag(help: "With --user: all entries of an app's export, up to eight.")
  var all = false

  @OptionGroup var source: DeviceOfSource
  @OptionGroup var options: ImportOptions
  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if all || !entry.isEmpty, user == nil {
      throw ValidationError("--entry and --all are used with --user")
    }
    if all, !entry.isEmpty { throw ValidationError("--entry and --all exclude each other") }
  }

  func candidates(_ context: Context, at now: UnixTime) throws(CommandError) -> [Candidate] {
    let content = try listContent(of: file, context)
    let export: AppExport?
    do throws(AppExport.Failure) {
      export = try AppExport.read(content)
    } catch {
      throw .unreadable(error, file)
    }
    return source.marked(try candidates(content, export))
  }

  private func candidates(_ content: Secret, _ export: AppExport?) throws(CommandError)
    -> [Candidate]
  {
    guard let bytes = withPlainBlanks(content, keepsLines: true) else {
      throw .store(.crypto(.outOfMemory))
    }
    guard let user else {
      if let export { throw .oneUsers(file, "an export of \(export.name)") }
      return try ofMany(try list(bytes))
    }
    let name = Array(user.utf8)
    guard let export else { return try chosen(try list(bytes).candidates(for: name), for: user) }
    let candidates = try chosen(export.candidates(for: name), for: user)
    if candidates.isEmpty {
      throw CommandError(
        .badData, "\(shownSource(file)): an export of \(export.name) in which nothing has codes")
    }
    return candidates
  }

  /// Its lines, of which one at least has the look of a URI.
  private func list(_ bytes: Secret) throws(CommandError) -> URIList {
    let list = URIList(bytes, isOneUsers: user != nil)
    if list.lines.contains(where: \.isMeant) { return list }
    let what = list.lines.isEmpty ? "nothing in it" : "no otpauth URI in it"
    let isTable = !list.lines.isEmpty && TokenList.isMeant(bytes)
    throw CommandError(
      .badData, "\(shownSource(file)): \(what)",
      hinting: {
        isTable
          ? [Invocation(verb: $0.verb, store: $0.store).of("csv", file, remark: "a list of tokens")]
          : []
      })
  }

  private func ofMany(_ list: URIList) throws(CommandError) -> [Candidate] {
    if list.lines.contains(where: \.isExport) {
      throw .oneUsers(file, "an export of Google Authenticator")
    }
    return list.lines.map { $0.candidate(for: $0.user) }
  }

  /// Those of `--entry`. An export of several entries is not taken whole unasked: who knows the
  /// secret of another place could log in by it; where a picture of it is missing, that is said
  /// first. What has no authenticator is no import.
  private func chosen(_ found: [(number: Int, candidate: Candidate)], for user: String)
    throws(CommandError) -> [Candidate]
  {
    for number in entry where !found.contains(where: { $0.number == number }) {
      throw CommandError(
        .badData, "\(shownSource(file)): no entry \(number) that has codes",
        hinting: {
          [
            Invocation(verb: $0.verb, user: user, store: $0.store)
              .of("uri", file, "--dry-run", remark: "shows the entries")
          ]
        })
    }
    let isPartMissing = found.contains { $0.candidate.obstacle?.code == "part-missing" }
    var some = found.filter { entry.isEmpty || entry.contains($0.number) }.map(\.candidate)
    // Where a part is missing nothing is imported.
    if !entry.isEmpty {
      some += found.map(\.candidate).filter { $0.obstacle?.code == "part-missing" }
    }
    let entries = some.compactMap(\.authenticator).compactMap { one in
      one.entry.map { (number: $0, name: one.name) }
    }
    if let first = some.first, entry.isEmpty, !all, entries.count > 1, !isPartMissing {
      some = [Candidate(user: first.user, obstacle: .several(entries))] + some
    }
    guard let first = some.first,
      some.allSatisfy({ $0.authenticator == nil && $0.obstacle == nil })
    else { return some }
    some.append(Candidate(user: first.user, obstacle: .nothingOfUse(some.flatMap(\.remarks))))
    return some
  }
}

extension CommandError {
  fileprivate static func oneUsers(_ file: String, _ what: String) -> CommandError {
    CommandError(
      .usage, "\(shownSource(file)): \(what), which is one person's",
      hinting: {
        [Invocation(verb: $0.verb, user: "NAME", store: $0.store).of("uri", file)]
      })
  }

  fileprivate static func unreadable(_ failure: AppExport.Failure, _ file: String) -> CommandError {
    let source = shownSource(file)
    return switch failure {
    case .sealed(let name, let press):
      CommandError(
        .badData, "\(source): an encrypted export of \(name); for a plain one: \(press)")
    case .line(let fault):
      CommandError(.badData, "\(source):\(fault.line): \(fault.problem.text)")
    case .picture:
      CommandError(
        .badData, "\(source): a picture: zbarimg reads the QR codes in it",
        hinting: {
          [$0.piped(from: file, by: ["zbarimg", "-q", "--raw"])]
        })
    case .unknown:
      CommandError(
        .badData, "\(source): not an export of an app that is known here",
        hints: ["sallyport import uri --help  # names them"])
    case .tooLong:
      CommandError(
        .badData, "\(source): an export longer than \(AppExport.longest / 1024) KiB")
    }
  }
}
