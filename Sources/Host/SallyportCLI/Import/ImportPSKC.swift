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
      "Decrypt with the key in this file: 16, 24 or 32 bytes, as they are or in hexadecimal.",
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
    let container: KeyContainer
    let secret = try self.secret(output)
    do throws(KeyContainer.Error) {
      container = try KeyContainer(content, by: secret, period: period ?? 30)
    } catch {
      throw error.command(for: file, context)
    }
    for text in container.unheeded { output.warn("\(shownSource(file)): \(text)") }
    let importer = TokenImporter(
      store: store, context: context, recorder: try context.recorder(shared), dryRun: dryRun,
      file: file)
    let report = try importer.run(container.tokens)
    output.answer(report.facts(source: "pskc"), report.text(shared.store))
  }

  private func secret(_ output: Output) throws(CommandError) -> ContainerSecret? {
    if passphrase {
      return .passphrase(try output.ask("Passphrase: ", echo: false, or: .nothingChanged))
    }
    guard let keyFile else { return nil }
    let text: Secret
    do throws(SystemError) {
      let file = try OpenFile.regular(keyFile, following: false)
      output.warn(of: keyFile, mode: try file.facts().permissions)
      text = try file.secret(atMost: 4096)
    } catch {
      throw .secretFile(keyFile, errno: error.number)
    }
    if let key = text.key { return .key(key) }
    throw CommandError(
      .badData,
      "\(shownPath(keyFile)): no key of 16, 24 or 32 bytes, as they are or in hexadecimal",
      hints: lookingAt(keyFile))
  }
}

extension Secret {
  /// A key of AES that a file has, as it is or in hexadecimal; nil for anything else.
  fileprivate var key: Secret? {
    let lengths = [16, 24, 32]
    guard let text = slice(0..<count) else { return nil }
    for index in 0..<text.count where text[index] == 0x0a || text[index] == 0x0d {
      text.set(index, to: 0x20)
    }
    if let key = try? Hexadecimal.decode(text), lengths.contains(key.count) { return key }
    return lengths.contains(count) ? self : nil
  }
}

extension KeyContainer.Error {
  fileprivate func command(for path: String, _ context: Context) -> CommandError {
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
    case .wrongKey: return wrong("a wrong key, or the file was changed")
    case .unsupported(let what):
      return wrong("\(printable(what.utf8, limit: 100)): not supported")
    case .problems(let problems):
      return TokenListError.problems(problems).command(for: path, context)
    }
  }
}
