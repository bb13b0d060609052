import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

extension Store {
  /// The command for a person who was renamed, by either name, and the name before; nil if there is
  /// none, or it cannot be seen. A uid is given again: who prints it says for whom it is.
  func adoption(of one: Account, option: String? = nil) -> (command: String, former: String)? {
    guard let pair = try? renamedPair(with: one), let user = pair.account.name.typed,
      let former = pair.former.typed
    else { return nil }
    let from = (former.hasPrefix("-") ? "--from=" : "--from ") + shellQuoted(former)
    let adopt = Invocation(verb: "adopt", user: user, store: option).command("adopt", from)
    return (adopt, pair.former.text)
  }
}

extension CommandError {
  /// With the hint for a person who was renamed in place of the others.
  func hinting(at one: Account, in store: Store) -> CommandError {
    CommandError(cause) {
      let message = self.message($0)
      guard let (adopt, former) = store.adoption(of: one, option: $0.store) else { return message }
      let why = "if it is the same person: \(former) is enrolled with this uid and is not found"
      return Message(message.text, message.status, hints: ["\(adopt)  # \(why)"])
    }
  }
}
