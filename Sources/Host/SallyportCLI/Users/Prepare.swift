import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport prepare`: for `make install` and packages, and for copies of a machine.
struct Prepare: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Create the store, bring it up to date, or make one that was copied this machine's.")

  @Flag(help: "Leave the notes on users: they are about the accounts of another machine.")
  var storeOnly = false

  @Flag(
    help: ArgumentHelp(
      "Of a store that another machine has too, refuse what may have been used there: codes up to "
        + "now, all backup codes, and counters until they are synchronized."))
  var newMachine = false

  @Flag(help: "Remove every enrollment, for an image from which machines are made.")
  var empty = false

  @Flag(help: "Do not ask whether this is meant.")
  var yes = false

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if [storeOnly, newMachine, empty].filter(\.self).count > 1 {
      throw ValidationError("--store-only, --new-machine and --empty exclude each other")
    }
    if yes, !newMachine, !empty {
      throw ValidationError("--yes needs --new-machine or --empty")
    }
  }

  private struct Answer: Encodable {
    let store: String
  }

  func run(in context: Context) throws(CommandError) { _ = try status(in: context) }

  func status(in context: Context) throws(CommandError) -> Int32 {
    let store = try context.store(shared)
    if newMachine || empty {
      try storing { () throws(StoreTrouble) in try store.prepare() }
      let copy = CopiedStore(context: context, shared: shared, store: store, asks: !yes)
      return newMachine ? try copy.takeOver() : try copy.empty()
    }
    try context.recorder(shared).record(.prepare) { () throws(CommandError) in
      try prepare(store, context)
    }
    context.machine.restoreLabels(of: shared.path)
    let path = printable(shared.path.utf8, limit: 255)
    context.output(shared).answer(Answer(store: shared.path), "The store \(path) is ready.")
    return Sysexit.done.rawValue
  }

  private func prepare(_ store: Store, _ context: Context) throws(CommandError) {
    try storing { () throws(StoreTrouble) in try store.prepare() }
    if !storeOnly {
      let machine = context.machine
      try storing { () throws(StoreTrouble) in try context.mark(store, shared) }
      let texts =
        [context.copyText(of: store, named: shared.store)].compactMap { $0 } + machine.refusingLines
        + PolicyText.unsureGroups(on: machine)
        + context.adoptNotes(in: store, shared, isOrdered: true)
      for text in texts { context.output(shared).warn(text) }
    }
  }
}
