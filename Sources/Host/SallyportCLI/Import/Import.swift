import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportDoctor
import SallyportImport
import SallyportSupport
import SallyportSystem

/// `sallyport import`
struct Import: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Import enrollments of other modules: nobody has to scan again.",
    subcommands: [
      ImportGoogleAuthenticator.self, ImportPAMOath.self, ImportURI.self, ImportCSV.self,
      ImportPSKC.self,
    ])
}

/// A verb that imports. Each reads its own kind of source.
protocol ImportVerb: Verb where Shared == StoreOptions {
  var user: String? { get }
  var options: ImportOptions { get }
  func candidates(_ context: Context, at now: UnixTime) throws(CommandError) -> [Candidate]
  /// Whether it looked for all accounts, of which some may not be listed.
  func mayLackPeople(on machine: Machine) throws(CommandError) -> Bool
}

extension ImportVerb {
  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "import \(Self._commandName)", user: user(in: context), store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    // What a file lists is shown under the account's own name.
    if !options.dryRun, let user = user(in: context), UserName(Array(user.utf8)) != nil {
      _ = try context.meantAccount(user, context.output(shared))
    }
    let importer = Importer(
      options: options, store: try context.store(shared), context: context,
      recorder: try context.recorder(shared))
    let found = try candidates(context, at: try context.time())
    let done = try importer.run(try importer.persons(found))
    var invocation = invocation(in: context)
    invocation.typed = context.typed
    let report = ImportReport(
      all: done, source: Self._commandName, dryRun: options.dryRun, invocation: invocation)
    let output = context.output(shared)
    output.answer(report.facts, report.text(width: output.width))
    if let number = context.terminal.failure, report.hasBackupCodes {
      throw .backupCodesUnseen(errno: number)
    }
    if report.failed > 0 {
      throw CommandError(
        .badData, "\(report.failed) of \(counted(done.count, "user")) not imported")
    }
    if try mayLackPeople(on: context.machine) {
      throw .peopleUnseen("not looked at: homes of people")
    }
  }

  func mayLackPeople(on machine: Machine) throws(CommandError) -> Bool { false }

  func user(in context: Context) -> String? { user }
}

/// `sallyport import google-authenticator`
struct ImportGoogleAuthenticator: ImportVerb {
  static let configuration = CommandConfiguration(
    commandName: "google-authenticator",
    abstract: "Import the .google_authenticator files of one user or of all.")

  @Argument(
    help: ArgumentHelp(
      "The file. (default: .google_authenticator in the user's home; ${USER}, ${HOME} and ~ are "
        + "the user's)"))
  var file: String?

  @Option(help: ArgumentHelp("The user.", valueName: "name"))
  var user: String?

  @Flag(help: "Import the files of all accounts.")
  var allHomes = false

  @OptionGroup var options: ImportOptions
  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if user != nil, allHomes {
      throw ValidationError("--user and --all-homes exclude each other")
    }
    guard user != nil || allHomes else {
      throw ValidationError("one of --user and --all-homes is required")
    }
  }

  func candidates(_ context: Context, at now: UnixTime) throws(CommandError) -> [Candidate] {
    let template = HomePath(file ?? "~/.google_authenticator")
    if let user { return [try candidate(user, template, context, at: now)] }
    var seen: Set<[UInt8]> = []
    var candidates: [Candidate] = []
    let accounts = try storing { () throws(StoreTrouble) in try AccountBook.all() }
    for one in accounts where seen.insert(one.account.name.bytes).inserted {
      let path = template.path(for: one.account.name, home: one.home)
      let found = candidate(one.account.name.bytes, from: path, of: one.user, one.group, at: now)
      if found.obstacle?.isAbsence != true { candidates.append(found) }
    }
    return candidates
  }

  func mayLackPeople(on machine: Machine) throws(CommandError) -> Bool {
    guard allHomes else { return false }
    let listed = try storing { () throws(StoreTrouble) in try AccountBook.all() }
    return AccountBook.mayLackPeople(listed, on: machine)
  }

  /// The candidate of a named user, whose file must exist. Without an account, the caller must own
  /// the file.
  private func candidate(
    _ user: String, _ template: HomePath, _ context: Context, at now: UnixTime
  ) throws(CommandError) -> Candidate {
    let account = try context.account(user)
    let home = try storing { () throws(StoreTrouble) in try AccountBook.home(of: account) }
    if home == nil, template.needsHome || !options.users.allowMissing { throw .noSuchUser }
    let path = template.path(for: account.name, home: home?.home ?? "")
    let found = candidate(
      account.name.bytes, from: path, of: home?.user ?? context.effectiveUser, home?.group ?? 0,
      at: now)
    guard let obstacle = found.obstacle, obstacle.isAbsence, let number = obstacle.errno else {
      return found
    }
    throw .secretFile(path, errno: number)
  }

  private func candidate(
    _ user: [UInt8], from path: String, of uid: UInt32, _ gid: UInt32, at now: UnixTime
  ) -> Candidate {
    var result: Candidate
    do throws(Obstacle) {
      let isNamed = file != nil && !HomePath(file ?? "").needsHome
      let file = try SourceFile(
        isNamed ? absolutePath(path) : path, of: uid, gid, isNamed: isNamed,
        longest: GoogleAuthenticatorFile.longest)
      result = read(file.bytes, user, at: now)
    } catch {
      result = Candidate(user: user, obstacle: error)
    }
    result.path = path
    return result
  }

  private func read(_ bytes: Secret, _ user: [UInt8], at now: UnixTime) -> Candidate {
    do throws(LineProblem) {
      return try GoogleAuthenticatorFile.parse(bytes).candidate(for: user, at: now)
    } catch {
      return Candidate(user: user, obstacle: .line(error))
    }
  }
}

/// `sallyport import pam-oath`
struct ImportPAMOath: ImportVerb {
  static let configuration = CommandConfiguration(
    commandName: "pam-oath", abstract: "Import a users file of pam_oath.")

  @Argument(help: "The file, such as /etc/users.oath.")
  var file: String

  @Option(help: ArgumentHelp("Only the lines of this user.", valueName: "name"))
  var user: String?

  @Option(help: "Number of digits, if a line does not give it: the digits= of pam_oath's line.")
  var digits: Digits?

  @OptionGroup var source: DeviceOfSource
  @OptionGroup var options: ImportOptions
  @OptionGroup var shared: StoreOptions

  func candidates(_ context: Context, at now: UnixTime) throws(CommandError) -> [Candidate] {
    let list = UsersOath(try listContent(of: file, context))
    if list.lines.isEmpty, !list.others.isEmpty {
      throw CommandError(
        .badData,
        "\(shownSource(file)): not a users file of pam_oath: no line has the form TYPE USER "
          + "PASSWORD KEY (line \(listed(list.others.map { "\($0)" })))",
        hints: ["sallyport import --help  # names the kinds of files"])
    }
    var candidates: [Candidate] = []
    for line in list.lines where user.map({ line.user == Array($0.utf8) }) ?? true {
      var candidate = Candidate(user: line.user, line: line.number)
      do throws(TakeoverError) {
        candidate.authenticator = try authenticator(line, at: now, &candidate.remarks)
      } catch {
        switch error {
        case .problem(let problem):
          candidate.obstacle = .line(LineProblem(line.number, problem))
        case .crypto(let error): throw .store(.crypto(error))
        }
      }
      candidates.append(candidate)
    }
    return source.marked(candidates)
  }

  private func authenticator(
    _ line: UsersOathLine, at now: UnixTime, _ remarks: inout [Remark]
  ) throws(TakeoverError) -> ImportedAuthenticator {
    switch line.token {
    case .failure(let problem): throw .problem(problem)
    case .success(let token):
      return try token.authenticator(
        preferring: digits, at: now, token.lastUse.map { moments(of: $0) } ?? [], &remarks)
    }
  }
}

extension Verb where Shared == StoreOptions {
  /// Reads a whole list. Warns if others can read or write it.
  func listContent(
    of path: String, _ context: Context, longest: Int = SourceFile.longestList
  ) throws(CommandError) -> Secret {
    if path == "-" {
      let most = min(longest, Limits.list)
      do throws(Interruption) {
        if let all = try context.terminal.rest(limit: most) { return all }
      } catch {
        throw .stopped(error, .nothingChanged)
      }
      throw .importFile(path, Obstacle(path, .tooLong, longest: most))
    }
    do throws(Obstacle) {
      let file = try SourceFile(path, longest: longest)
      context.output(shared).warn(of: path, mode: file.mode)
      return file.bytes
    } catch {
      throw .importFile(path, error)
    }
  }
}

extension Output {
  /// Where others can read or write a file that has secrets.
  func warn(of path: String, mode: UInt32) {
    guard mode & 0o077 != 0 else { return }
    let what = mode & 0o022 != 0 ? "write" : "read"
    let name = printable(path.utf8, limit: 255)
    warn("others can \(what) \(name) (mode 0\(String(mode & 0o7777, radix: 8)))")
  }
}

extension CommandError {
  /// `hints`: by the command that was typed.
  init(
    _ status: Sysexit, _ text: String, hinting hints: @escaping @Sendable (Invocation) -> [String]
  ) {
    self.init { Message(text, status, hints: hints($0)) }
  }

  /// A list to import cannot be read.
  fileprivate static func importFile(_ path: String, _ obstacle: Obstacle) -> CommandError {
    if path.lowercased().hasPrefix("otpauth:") {
      return CommandError(
        .usage,
        "a URI is not taken from the command line, which others can read: it is read from standard "
          + "input or a file", hints: ["sallyport import uri --user NAME < FILE"])
    }
    return CommandError(
      obstacle.errno.map { Sysexit(errno: $0) } ?? .badData,
      "\(shownSource(path)): \(obstacle.text)", hints: path == "-" ? [] : lookingAt(path))
  }
}

extension Invocation {
  /// `sallyport import csv list.csv`, for another kind of file.
  func of(_ kind: String, _ file: String, _ option: String = "", remark: String = "") -> String {
    let name = file == "-" ? "FILE" : commandWords([file])
    return command(
      "import \(kind)", [name, option].filter { !$0.isEmpty }.joined(separator: " "), remark: remark
    )
  }

  /// The command that was typed, with what a program makes of the file as standard input.
  func piped(from file: String, by program: [String], isInput: Bool = false) -> String {
    let name = file == "-" ? "FILE" : shellQuoted(file)
    var second = self
    if let place = second.typed.lastIndex(of: file) {
      second.typed[place] = "-"
    } else {
      second.typed.append("-")
    }
    let first = program.map(shellQuoted) + (isInput ? ["<", name] : [name])
    return first.joined(separator: " ") + " | " + second.again()
  }
}

/// A list to import, for a message.
func shownSource(_ path: String) -> String {
  path == "-" ? "standard input" : shownPath(path)
}
