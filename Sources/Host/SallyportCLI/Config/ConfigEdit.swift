import ArgumentParser
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport config edit`
struct ConfigEdit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit the policy file, and check it before it is installed.",
    discussion: """
      Runs $VISUAL, $EDITOR, editor or vi on a copy. If the copy has errors, they are \
      listed, and it can be edited again or dropped. What is neither installed nor dropped stays \
      in the copy.
      """)

  @Option(help: ArgumentHelp("The policy file.", valueName: "file"))
  var conf = "\(Store.usualPolicy)"

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let file: String
    let changed: Bool
  }

  func run(in context: Context) throws(CommandError) {
    let lock = try EditLock(conf)
    let before = try PolicyText(conf, isOptional: true).content
    clearCopies(from: before, context)
    let copy = try PolicyCopy(of: before.count > 0 ? before : ConfigEdit.beginning, beside: conf)
    let output = context.output(shared)
    let isChanged: Bool
    do throws(CommandError) {
      isChanged = try edit(copy, from: before, output, context)
    } catch {
      guard let step = nextStep(with: copy.path, from: before, context) else { throw error }
      copy.isKept = true
      throw CommandError(error.cause) {
        var message = error.message($0)
        message.hints.append("\(step)  # your changes are kept there")
        return message
      }
    }
    output.answer(
      Answer(file: conf, changed: isChanged),
      isChanged
        ? "Installed as \(printable(conf.utf8, limit: 255))." : "Nothing was changed.")
    withExtendedLifetime((lock, copy)) {}
  }

  /// Removes the copies of edits that were killed, unless they have changes that nobody installed.
  /// The lock is ours, so nobody edits them.
  private func clearCopies(from before: Secret, _ context: Context) {
    for path in context.machine.paths("\(conf).edit-*") {
      guard let step = nextStep(with: path, from: before, context) else {
        removeFile(path)
        continue
      }
      let name = printable(path.utf8, limit: 255)
      context.output(shared).warn(
        "\(name): changes of an earlier edit, which are not installed; see: \(step)")
    }
  }

  /// What to type to go on with the changes in a copy; nil if it has none.
  private func nextStep(with path: String, from before: Secret, _ context: Context) -> String? {
    let copy = shellQuoted(path)
    do throws(CommandError) {
      let text = try PolicyText(path, isOptional: true)
      let known = [before, ConfigEdit.beginning, inMemory(Secret(count: 0))]
      if known.contains(where: { constantTimeEquals($0, text.content) }) { return nil }
      if PolicyCheck(text, context).errors.isEmpty {
        let option = conf == "\(Store.usualPolicy)" ? "" : " --conf \(shellQuoted(conf))"
        return "sallyport config install \(copy)\(option)"
      }
    } catch {}
    return "sallyport config check \(copy)"
  }

  /// The content of a new policy file.
  private static var beginning: Secret {
    inMemory(Secret(Array("# What each key means: man sallyport.conf\n\n[default]\n".utf8)))
  }

  /// Edits until the copy can be installed, and installs it; returns false if it stays as it was.
  /// Throws if the editor fails or the changes are dropped.
  private func edit(
    _ copy: PolicyCopy, from before: Secret, _ output: Output, _ context: Context
  ) throws(CommandError) -> Bool {
    while true {
      switch context.edit(copy.path) {
      case .done: break
      case .failed(let status):
        throw CommandError(
          .refused, "the editor exited with status \(status): nothing was changed")
      case .cannotRun(let number): throw .policyFile(path: "/bin/sh", errno: number)
      }
      let text = try PolicyText(copy.path, isOptional: false, namedAs: conf)
      let check = PolicyCheck(text, context)
      var problem = ""
      do throws(CommandError) {
        try check.tell(context.terminal)
        if constantTimeEquals(text.content, before) { return false }
        if try text.isAgreed(as: conf, yes: false, shared, context) {
          try context.install(text, as: conf, by: .configEdit)
          return true
        }
      } catch {
        if check.errors.isEmpty { throw error }
        problem = "\(counted(check.errors.count, "error")). "
      }
      try askWhatNow(problem, copy, output)
    }
  }

  /// Throws if the changes are to be dropped, or if there is no answer.
  private func askWhatNow(_ problem: String, _ copy: PolicyCopy, _ output: Output)
    throws(CommandError)
  {
    let question = "\(problem)Edit again, or drop the changes? [e/d]: "
    while true {
      let typed = try output.ask(question, echo: true, or: .nothingChanged)
      switch String(decoding: typed.bytes(in: 0..<typed.count), as: UTF8.self) {
      case "e", "E", "": return
      case "d", "D":
        removeFile(copy.path)
        throw .declined(.nothingChanged)
      case _: continue
      }
    }
  }
}

/// The lock that lets only one `config edit` work on a policy file at a time.
private final class EditLock {
  private let path: String
  private let file: OpenFile

  init(_ conf: String) throws(CommandError) {
    path = conf + ".lock"
    do throws(SystemError) {
      file = try lockedFile(path, waiting: false)
    } catch {
      guard error.number == EAGAIN else { throw .policyFile(path: path, errno: error.number) }
      let shown = printable(conf.utf8, limit: 255)
      throw CommandError(.busy, "\(shown) is being edited by somebody else")
    }
  }

  deinit { removeFile(path) }
}

/// The copy of a policy file that is edited, removed with this object unless it is kept.
private final class PolicyCopy {
  let path: String
  var isKept = false

  init(of text: Secret, beside conf: String) throws(CommandError) {
    let number = try freshIdentifier()
    path = "\(conf).edit-\(String(number, radix: 16))"
    do throws(SystemError) {
      try createFile(path, text)
    } catch {
      throw .policyFile(path: path, errno: error.number)
    }
  }

  deinit { if !isKept { removeFile(path) } }
}
