import Glibc
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
package import SallyportSystem

extension Context {
  /// Makes what is missing of the store, and takes one that names no machine for this one's.
  package func prepare(_ store: Store) throws(StoreTrouble) {
    try store.prepare()
    try store.adopt(machine.mark)
  }

  /// Takes the store for this machine's where it says of no other.
  func mark(_ store: Store, _ options: StoreOptions) throws(StoreTrouble) {
    try store.adopt(named(options, isNew: false))
  }

  /// Takes the store for this machine's whatever it says, with another word. `left`: the
  /// directories of those who still have what was used on the other machine.
  func markCopy(
    _ store: Store, _ options: StoreOptions, left: [String], since: UnixTime
  ) throws(StoreTrouble) {
    func mark() -> MachineMark {
      var mark = named(options, isNew: true)
      (mark.left, mark.since) = (left, since)
      return mark
    }
    try store.set(mark())
  }

  /// This machine, with its word.
  private func named(_ options: StoreOptions, isNew: Bool) -> MachineMark {
    writeWord(for: options, isNew: isNew)
    return machine.mark
  }

  /// A machine whose /etc cannot be written has no word, and is known by the rest. Nor is it about
  /// a store that is not this machine's.
  private func writeWord(for options: StoreOptions, isNew: Bool) {
    guard options.path == Store.usualRoot else { return }
    if !isNew, (try? facts(of: word)) != nil { return }
    guard let text = try? MachineMark.randomWord() else { return }
    try? replaceFile(word, Array("\(text)\n".utf8))
  }

  func removeWord(of options: StoreOptions) {
    if options.path == Store.usualRoot { removeFile(word) }
  }

  private var word: String { stacks.root + Machine.word }

  /// What a store of another machine means, and what to type; nil: it is this machine's.
  func copyText(of store: Store, named path: String?) -> String? {
    guard let parts = try? machine.difference(from: store), !parts.isEmpty else { return nil }
    let fix = Invocation(verb: "prepare", store: path).command("prepare", "--new-machine")
    return MachineMark.copyText(parts) + "; \"\(fix)\" refuses them"
  }

  /// Tells the log, once a boot, where the store is another machine's.
  func tellOfMachine(_ store: Store, named path: String?) {
    guard let text = copyText(of: store, named: path) else { return }
    let told = stacks.root + "/run/sallyport-machine.told"
    if (try? facts(of: told)) != nil { return }
    tellLog(LOG_ALERT, text)
    try? replaceFile(told, [])
  }
}
