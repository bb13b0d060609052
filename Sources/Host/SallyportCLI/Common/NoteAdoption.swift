import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

extension Context {
  /// Gives notes of before their uid. What cannot be read stays as it is and lets nobody in; an
  /// upgrade goes on. Returns what to tell the administrator. `isOrdered`: this is root's command;
  /// else it loosens nothing, and returns only what is new or waits for that command.
  func adoptNotes(in store: Store, _ shared: StoreOptions, isOrdered: Bool) -> [String] {
    do throws(StoreTrouble) {
      let areLocal = NameSources(of: "passwd", on: machine).areLocal
      let left = try store.adoptNotes(areLocal: areLocal, isOrdered: isOrdered, Accounts.find)
      return left.compactMap { note in
        switch note.reason {
        case .noAccount, .exempt: warning(of: note, shared)
        case .unseen, .trouble: isOrdered ? warning(of: note, shared) : nil
        }
      }
    } catch {
      if !isOrdered { return [] }
      return [Message(error, at: Invocation(verb: "prepare", store: shared.store)).text]
    }
  }

  private func warning(of note: Store.UnadoptedNote, _ shared: StoreOptions) -> String {
    let invocation = Invocation(verb: "exempt", user: note.user?.typedOrShown, store: shared.store)
    let whose = note.user == nil ? printable(note.path.utf8, limit: 255) : invocation.who
    let prepare = Invocation(verb: "prepare", store: shared.store).command("prepare")
    return switch note.reason {
    case .noAccount:
      "\(whose) is exempt no more: there was no such account when the note was to "
        + "get its uid; for the account of that name: \(invocation.command("exempt"))"
    case .unseen:
      "the level of \(whose) stays without a uid, and lets nobody in: there is no "
        + "such account now, and a directory may be away; then: \(prepare)"
    case .exempt:
      "the level of \(whose) has no uid yet, and lets nobody in; if this is still the right "
        + "account: \(prepare)"
    case .trouble(let trouble):
      "the level of \(whose) stays without a uid: " + Message(trouble, at: invocation).text
    }
  }
}
