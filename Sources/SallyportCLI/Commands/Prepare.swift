import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport prepare`: for `make install` and packages.
struct Prepare: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Make the store, where there is none.", shouldDisplay: false)

  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { nil }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    try storing { () throws(StoreTrouble) in try place.prepare() }
    if store.json {
      context.voice(store).answer(.object([("store", .text(store.path))]), "")
    }
  }
}
