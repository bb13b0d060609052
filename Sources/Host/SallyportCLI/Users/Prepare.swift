import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

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
        + context.adoptNotes(in: store, shared, isOrdered: true)
      for text in texts { output.warn(text) }
    }
    context.machine.restoreLabels(of: shared.path)
    let path = printable(shared.path.utf8, limit: 255)
    output.answer(Answer(store: shared.path), "The store \(path) is ready.")
  }
}
