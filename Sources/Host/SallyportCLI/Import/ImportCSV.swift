import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// `sallyport import csv`
struct ImportCSV: Verb {
  static let configuration = CommandConfiguration(
    commandName: "csv", abstract: "Import a vendor's list of hardware tokens, as nobody's yet.",
    discussion: """
      Separated by commas, semicolons or tabs, with or without a head. With a wrong line nothing \
      is imported. Then: sallyport token assign SERIAL USER
      """)

  @Argument(help: "The file, or - for standard input.")
  var file: String

  @Option(help: ArgumentHelp("In which form the secrets are. (default: as they look)"))
  var secret: SecretForm?

  @Option(
    help: ArgumentHelp(
      "The columns in order: serial, secret, type, period, digits, algorithm, counter, user, and - "
        + "for any other. (default: by the head)", valueName: "list"))
  var columns: String?

  @OptionGroup var standard: TokenStandard

  @Flag(help: "Change nothing; show what would be done.")
  var dryRun = false

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if let columns, TokenColumn.list(columns) == nil {
      throw ValidationError("--columns takes names of columns, each once, serial and secret too")
    }
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "import csv", store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    let content = try listContent(of: file, context, longest: TokenList.longest)
    let list: TokenList
    do throws(TokenListError) {
      list = try TokenList(
        content, in: secret, columns.flatMap { TokenColumn.list($0) }, standard: standard.parameters
      )
    } catch {
      throw error.command(for: file, context)
    }
    let importer = TokenImporter(
      store: store, context: context, recorder: try context.recorder(shared), dryRun: dryRun,
      file: file)
    var report = try importer.run(list.tokens, leftOut: list.leftOut)
    report.told = list.columnsTold
    context.output(shared).answer(report.facts(source: "csv"), report.text(shared.store))
  }
}

extension SecretForm: ExpressibleByArgument {}

/// What holds of a token where its list does not say it.
struct TokenStandard: ParsableArguments {
  @Option(help: "Time-based or counter-based codes, where the file does not say it.")
  var type = TypeOption.totp

  @Option(help: ArgumentHelp("Time step in seconds, where the file does not say it. (default: 30)"))
  var period: UInt32?

  @Option(help: "Number of digits of a code, where the file does not say it.")
  var digits = Digits.six

  @Option(help: "The hash function of the codes, where the file does not say it.")
  var algorithm = AlgorithmOption.sha1

  func validate() throws {
    if let period, !CodeParameters.periods.contains(period) {
      throw ValidationError("--period takes 15 to 300 seconds")
    }
  }

  /// Valid after `validate`.
  var parameters: CodeParameters {
    let kind: AuthenticatorType =
      switch type {
      case .totp: .totp(period: period ?? 30)
      case .hotp: .hotp
      }
    return CodeParameters(type: kind, algorithm: algorithm.algorithm, digits: digits) ?? .standard
  }
}

extension TokenList {
  /// How each column of the head was read; or which line was left out as a head.
  fileprivate var columnsTold: String? {
    if let headLine { return "Line \(headLine) was taken for the head, and for no token." }
    func name(_ bytes: [UInt8]) -> String { "\"\(printable(bytes, limit: 64))\"" }
    let used = heads.filter { $0.column != .other }
    let unused = heads.filter { $0.column == .other && !$0.name.isEmpty }.map { name($0.name) }
    guard !used.isEmpty else { return nil }
    let read = used.map { "\(name($0.name)) is \($0.column.rawValue)" }.joined(separator: ", ")
    return "Columns: \(read)"
      + (unused.isEmpty ? "." : "; not used: \(unused.joined(separator: ", ")).")
  }
}

extension TokenListError {
  /// With more lines than this, the rest is counted.
  private static let mostLines = 100

  /// Says which lines are wrong, and returns what it means. `more`: hints about lines.
  func command(
    for path: String, _ context: Context,
    hinting more: @escaping @Sendable (Invocation) -> [String] = { _ in [] }
  ) -> CommandError {
    let file = shownSource(path)
    func wrong(_ text: String, _ hints: @escaping @Sendable (Invocation) -> [String] = { _ in [] })
      -> CommandError
    {
      CommandError { Message("\(file): \(text): nothing was imported", .badData, hints: hints($0)) }
    }
    let columns: @Sendable (Invocation) -> [String] = {
      [$0.again(["--columns", "serial,secret"], remark: "with the names of its columns")]
    }
    switch self {
    case .notText: return wrong("no text in UTF-8; save it as \"CSV UTF-8\"")
    case .empty: return wrong("no token in it")
    case .markup:
      return wrong("XML, and no list") {
        [Invocation(verb: $0.verb, store: $0.store).of("pskc", path, remark: "a key container")]
      }
    case .noSeparator(let hasBlanks):
      return wrong("no comma, semicolon or tab in its first line") {
        hasBlanks ? [$0.piped(from: path, by: ["tr", "-s", " ", ","], isInput: true)] : []
      }
    case .noColumn(let column): return wrong("its head names no column \(column.rawValue)", columns)
    case .doubleColumn(let column):
      return wrong("its head names two columns \(column.rawValue)", columns)
    case .unknownColumns(let line):
      return wrong("line \(line): no head says what the third column is", columns)
    case .unknownHead(let number, let name, let meant):
      let shown = printable(name, limit: 64)
      return wrong(
        "column \(number) (\"\(shown)\") may be \(meant.rawValue), and is not understood", columns)
    case .secretsAsSerials:
      return wrong("its serial numbers look like secrets: columns may be exchanged", columns)
    case .eitherForm:
      return wrong("all its secrets can be hexadecimal and base32") { invocation in
        SecretForm.allCases.map { invocation.again(["--secret", $0.rawValue]) }
      }
    case .bothForms(let hexadecimal, let base32):
      return wrong(
        "the secret of line \(hexadecimal) is hexadecimal, that of line \(base32) base32")
    case .problems(let problems):
      for one in problems.prefix(TokenListError.mostLines) {
        context.terminal.write(Array("sallyport: \(file): \(one.told)\n".utf8), to: .aside)
      }
      return wrong("\(counted(problems.count, "line")) wrong", more)
    }
  }
}
