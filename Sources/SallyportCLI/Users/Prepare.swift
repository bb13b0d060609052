import ArgumentParser
import SallyportCore
import SallyportDoctor
import SallyportSystem
import SallyportText

/// `sallyport prepare`: for `make install` and packages.
struct Prepare: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Create the store, or bring it up to date.", shouldDisplay: false)

  @Flag(help: "Leave the notes on users: they are about the accounts of another machine.")
  var storeOnly = false

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let store: String
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    try storing { () throws(StoreTrouble) in try store.prepare() }
    let output = context.output(shared)
    if !storeOnly {
      let machine = context.machine
      let texts =
        machine.refusingLines + PolicyText.unsureGroups(on: machine)
        + context.adoptNotes(in: store, shared)
      for text in texts { output.warn(text) }
    }
    context.machine.restoreLabels(of: shared.path)
    let path = printable(shared.path.utf8, limit: 255)
    output.answer(Answer(store: shared.path), "The store \(path) is ready.")
  }
}

extension Context {
  /// Gives notes of before their uid. What cannot be read stays as it is and lets nobody in; an
  /// upgrade goes on. Returns what to tell the administrator; with `onlyNew`, only what is told
  /// once.
  func adoptNotes(in store: Store, _ shared: StoreOptions, onlyNew: Bool = false) -> [String] {
    do throws(StoreTrouble) {
      let areFiles = NameSources(of: "passwd", on: machine).areFiles
      let left = try store.adoptNotes(areFiles: areFiles, Accounts.find)
      return left.filter { !onlyNew || !$0.isUnseen && $0.trouble == nil }.map {
        warning(of: $0, shared)
      }
    } catch {
      if onlyNew { return [] }
      return [Message(error, at: Invocation(verb: "prepare", store: shared.store)).text]
    }
  }

  private func warning(of note: Store.UnadoptedNote, _ shared: StoreOptions) -> String {
    let invocation = Invocation(verb: "exempt", user: note.user?.text, store: shared.store)
    if note.isUnseen {
      return "the level of \(invocation.who) stays without a uid, and lets nobody in: there is no "
        + "such account now, and a directory may be away; then: "
        + Invocation(verb: "prepare", store: shared.store).command("prepare")
    }
    guard let trouble = note.trouble else {
      return "\(invocation.who) is exempt no more: there was no such account when the note was to "
        + "get its uid; for the account of that name: \(invocation.command("exempt"))"
    }
    return "the level of \(note.user == nil ? note.path : invocation.who) stays without a uid: "
      + Message(trouble, at: invocation).text
  }
}
