import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// `sallyport import pskc`
struct ImportPSKC: Verb {
  static let configuration = CommandConfiguration(
    commandName: "pskc",
    abstract: "Import a key container (PSKC) of hardware tokens, as nobody's yet.",
    discussion: """
      Plain, or encrypted by a key or a passphrase. With a wrong key nothing is imported. \
      Then: sallyport token assign SERIAL USER
      """)

  @Argument(help: "The file, or - for standard input.")
  var file: String

  @Option(
    help: ArgumentHelp(
      "Decrypt with the key in this file: 16, 24 or 32 bytes, as they are, in hexadecimal or "
        + "base64.",
      valueName: "file"))
  var keyFile: String?

  @Flag(help: "Decrypt with a passphrase, which is asked for.")
  var passphrase = false

  @Option(help: ArgumentHelp("Time step in seconds, where the file does not say it. (default: 30)"))
  var period: UInt32?

  @Flag(help: "Change nothing; show what would be done.")
  var dryRun = false

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if keyFile != nil, passphrase {
      throw ValidationError("--key-file and --passphrase exclude each other")
    }
    if file == "-", passphrase {
      throw ValidationError("--passphrase takes standard input, so that - cannot be the file")
    }
    if let period, !CodeParameters.periods.contains(period) {
      throw ValidationError("--period takes 15 to 300 seconds")
    }
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "import pskc", store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    let output = context.output(shared)
    let content = try listContent(of: file, context, longest: KeyContainer.longest)
    let (container, told) = try container(content, context, output)
    for text in container.unheeded { output.warn("\(shownSource(file)): \(text)") }
    let importer = TokenImporter(
      store: store, context: context, recorder: try context.recorder(shared), dryRun: dryRun,
      file: file)
    var report = try importer.run(container.tokens)
    report.told = told
    output.answer(report.facts(source: "pskc"), report.text(shared.store))
  }

  /// And how the file of the key was read. Where it can be read in several ways, the MACs of the
  /// container tell which is right.
  private func container(_ content: Secret, _ context: Context, _ output: Output)
    throws(CommandError) -> (KeyContainer, told: String?)
  {
    guard let keyFile else {
      let phrase =
        passphrase ? try output.ask("Passphrase: ", echo: false, or: .nothingChanged) : nil
      do throws(KeyContainer.Error) {
        return (try read(content, by: phrase.map { .passphrase($0) }), nil)
      } catch {
        throw error.command(for: file, context)
      }
    }
    let keys = try keys(of: keyFile, output)
    var errors: [KeyContainer.Error] = []
    for (key, form) in keys {
      do throws(KeyContainer.Error) {
        let container = try read(content, by: .key(key))
        return (container, "The key has \(key.count) bytes, read \(form.words).")
      } catch {
        errors.append(error)
      }
    }
    // A key of another length says less than one that was tried.
    let error = errors.first { $0 == .wrongKey } ?? errors.first ?? .wrongKey
    let ways = keys.map { "\($0.key.count) bytes \($0.form.words)" }
    throw error.command(for: file, context, tried: ways)
  }

  private func read(_ content: Secret, by secret: ContainerSecret?) throws(KeyContainer.Error)
    -> KeyContainer
  {
    try KeyContainer(content, by: secret, period: period ?? 30)
  }

  /// At least one.
  private func keys(of keyFile: String, _ output: Output) throws(CommandError)
    -> [(key: Secret, form: ContainerKeyForm)]
  {
    let text: Secret
    do throws(SystemError) {
      let file = try OpenFile.regular(keyFile, following: false)
      output.warn(of: keyFile, mode: try file.facts().permissions)
      text = try file.secret(atMost: 4096)
    } catch {
      throw .secretFile(keyFile, errno: error.number)
    }
    let keys = ContainerKeyForm.keys(in: text)
    if !keys.isEmpty { return keys }
    throw CommandError(
      .badData,
      "\(shownPath(keyFile)): no key of 16, 24 or 32 bytes, as they are, in hexadecimal or base64",
      hints: lookingAt(keyFile))
  }
}

extension ContainerKeyForm {
  fileprivate var words: String {
    switch self {
    case .bytes: "as they are"
    case .hexadecimal: "in hexadecimal"
    case .base64: "in base64"
    }
  }
}

extension KeyContainer.Error {
  /// `ways`: as what the file of the key was tried, where it is a question.
  fileprivate func command(for path: String, _ context: Context, tried ways: [String] = [])
    -> CommandError
  {
    let file = shownSource(path)
    func wrong(_ text: String, _ options: [String] = [], remark: String = "") -> CommandError {
      CommandError {
        let hints = options.isEmpty ? [] : [$0.again(options, remark: remark)]
        return Message("\(file): \(text): nothing was imported", .badData, hints: hints)
      }
    }
    func needed(_ passphrase: Bool) -> [String] {
      passphrase ? ["--passphrase"] : ["--key-file", "FILE"]
    }
    switch self {
    case .notXML(let line): return wrong("no XML, or with a document type (line \(line))")
    case .notContainer: return wrong("no key container (RFC 6030)")
    case .empty: return wrong("no key in it")
    case .keyWanted(let passphrase):
      return wrong("its secrets are encrypted", needed(passphrase), remark: "decrypts them")
    case .otherKeyWanted(let passphrase):
      let what = passphrase ? "a passphrase" : "a key"
      return wrong("its secrets are encrypted by \(what)", needed(passphrase))
    case .wrongKey:
      let tried = ways.isEmpty ? "" : " (read as \(ways.joined(separator: " and ")))"
      return wrong("a wrong key\(tried), or the file was changed")
    case .unsupported(let what):
      return wrong("\(printable(what.utf8, limit: 100)): not supported")
    case .problems(let problems):
      return TokenListError.problems(problems).command(for: path, context)
    }
  }
}
