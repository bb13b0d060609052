import ArgumentParser
import Glibc
import OneTimePassword
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport config edit`
struct ConfigEdit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit the policy file, and check it before it is installed.",
    discussion: """
      Runs $VISUAL, $EDITOR, sensible-editor or vi on a copy. If the copy has errors, they are \
      listed, and it can be edited again or dropped.
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
    clearCopies(sayingOnly: before, context)
    let copy = try PolicyCopy(of: before.count > 0 ? before : ConfigEdit.beginning, beside: conf)
    let output = context.output(shared)
    let text = try edit(copy, output, context)
    let isChanged = !constantTimeEquals(text.content, before)
    if isChanged {
      try text.show(as: conf, isAgreed: false, shared, context)
      try text.install(as: conf)
    }
    output.answer(
      Answer(file: conf, changed: isChanged),
      isChanged
        ? "Installed as \(printable(conf.utf8, limit: 255))." : "Nothing was changed.")
    withExtendedLifetime((lock, copy)) {}
  }

  /// Removes the copies of edits that were killed, unless they have changes that nobody installed.
  /// The lock is ours, so nobody edits them.
  private func clearCopies(sayingOnly content: Secret, _ context: Context) {
    for path in context.machine.paths("\(conf).edit-*") {
      do throws(CommandError) {
        let copy = try PolicyText(path, isOptional: true).content
        let isUnchanged = [content, ConfigEdit.beginning].contains { constantTimeEquals($0, copy) }
        if isUnchanged, removeFile(path) { continue }
      } catch {}
      let name = printable(path.utf8, limit: 255)
      context.output(shared).warn("\(name): left by an edit that was killed, and not installed")
    }
  }

  /// The content of a new policy file.
  private static var beginning: Secret {
    inMemory(Secret(Array("# What each key means: man sallyport.conf\n\n[default]\n".utf8)))
  }

  /// Edits until the copy has no errors. Throws if the editor fails or the changes are dropped.
  private func edit(_ copy: PolicyCopy, _ output: Output, _ context: Context) throws(CommandError)
    -> PolicyText
  {
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
      do throws(CommandError) {
        try check.tell(context.terminal)
        return text
      } catch {
        try askWhatNow(check.errors.count, output)
      }
    }
  }

  /// Throws if the changes are to be dropped, or if there is no answer.
  private func askWhatNow(_ problems: Int, _ output: Output) throws(CommandError) {
    let question = "\(counted(problems, "error")). Edit again, or drop the changes? [e/d]: "
    while true {
      let typed = try output.ask(question, echo: true, or: .nothingChanged)
      switch String(decoding: typed.bytes(in: 0..<typed.count), as: UTF8.self) {
      case "e", "E", "": return
      case "d", "D": throw .declined(.nothingChanged)
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

/// The copy of a policy file that is edited, removed with this object.
private final class PolicyCopy {
  let path: String

  init(of text: Secret, beside conf: String) throws(CommandError) {
    let number = try freshIdentifier()
    path = "\(conf).edit-\(String(number, radix: 16))"
    do throws(SystemError) {
      try createFile(path, text)
    } catch {
      throw .policyFile(path: path, errno: error.number)
    }
  }

  deinit { removeFile(path) }
}
