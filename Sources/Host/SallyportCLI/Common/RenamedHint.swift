import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

extension Store {
  /// The hint for a person who was renamed, by either name; nil if there is none, or it cannot be
  /// seen. A uid is given again: it says so.
  func renamedHint(of one: Account, _ invocation: Invocation) -> String? {
    guard let pair = try? renamedPair(with: one), let user = pair.account.name.typed,
      let former = pair.former.typed
    else { return nil }
    return Invocation(verb: "adopt", user: user, store: invocation.store).command(
      "adopt", (former.hasPrefix("-") ? "--from=" : "--from ") + shellQuoted(former),
      remark:
        "if it is the same person: \(pair.former.text) is enrolled with this uid and is not found")
  }
}

extension CommandError {
  /// With the hint for a person who was renamed in place of the others.
  func hinting(at one: Account, in store: Store) -> CommandError {
    CommandError(cause) {
      let message = self.message($0)
      guard let hint = store.renamedHint(of: one, $0) else { return message }
      return Message(message.text, message.status, hints: [hint])
    }
  }
}
