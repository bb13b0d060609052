import ArgumentParser
import SallyportCore
import SallyportDoctor
import SallyportSystem

/// `sallyport prepare`: for `make install` and packages.
struct Prepare: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Create the store, if there is none.", shouldDisplay: false)

  @OptionGroup var shared: StoreOptions

  private struct Answer: Encodable {
    let store: String
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    try storing { () throws(StoreTrouble) in try store.prepare() }
    context.machine.restoreLabels(of: shared.path)
    let path = printable(shared.path.utf8, limit: 255)
    context.output(shared).answer(Answer(store: shared.path), "The store \(path) is ready.")
  }
}
