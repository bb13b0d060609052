import ArgumentParser
import SallyportCore
import SallyportDoctor
import SallyportSystem
import SallyportText

/// `sallyport prepare`: for `make install` and packages.
struct Prepare: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Create the store, or bring it up to date.", shouldDisplay: false)

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let store: String
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    try storing { () throws(StoreTrouble) in try store.prepare() }
    adoptNotes(in: store, context)
    context.machine.restoreLabels(of: shared.path)
    let path = printable(shared.path.utf8, limit: 255)
    context.output(shared).answer(Answer(store: shared.path), "The store \(path) is ready.")
  }

  /// What cannot be read stays as it is and lets nobody in; an upgrade goes on.
  private func adoptNotes(in store: Store, _ context: Context) {
    let output = context.output(shared)
    do throws(StoreTrouble) {
      let areFiles = NameSources(of: "passwd", on: context.machine).areFiles
      for note in try store.adoptNotes(areFiles: areFiles, Accounts.find) { warn(of: note, output) }
    } catch {
      output.warn(Message(error, at: Invocation(verb: "prepare", store: shared.store)).text)
    }
  }

  private func warn(of note: Store.UnadoptedNote, _ output: Output) {
    let invocation = Invocation(verb: "exempt", user: note.user?.text, store: shared.store)
    if note.isUnseen {
      return output.warn(
        "the level of \(invocation.who) stays without a uid, and lets nobody in: there is no such "
          + "account now, and a directory may be away; then: "
          + Invocation(verb: "prepare", store: shared.store).command("prepare"))
    }
    guard let trouble = note.trouble else {
      return output.warn(
        "\(invocation.who) is exempt no more: there was no such account when the note was to get "
          + "its uid; for the account of that name: \(invocation.command("exempt"))")
    }
    output.warn(
      "the level of \(note.user == nil ? note.path : invocation.who) stays without a uid: "
        + Message(trouble, at: invocation).text)
  }
}
