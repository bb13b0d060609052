internal import CService
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The lines of what the user does, for himself or as a helper: in the log of the system, and in
/// the file of acts of the store. Nothing waits or fails for the want of either.
struct SessionAct {
  let store: Store
  let client: Client
  /// Whom it is about.
  let user: UserName
  let verb: Act.Verb
  let facts: [Act.Fact]
  /// Whether the month of the store has no room for it: for both its lines, or for neither.
  private let isTooMuch: Bool

  init(_ change: EnrollmentChange, of user: UserName, by client: Client, in store: Store) {
    let (verb, facts) = Act.told(change)
    self.init(verb, facts, of: user, by: client, in: store)
  }

  init(
    _ verb: Act.Verb, _ facts: [Act.Fact], of user: UserName, by client: Client, in store: Store
  ) {
    (self.store, self.client, self.user) = (store, client, user)
    (self.verb, self.facts) = (verb, facts)
    // Helpers have a bound of their own.
    let month = (try? Clock.now())?.internetText.map { String($0.prefix(7)) }
    isTooMuch =
      if user == client.account.name, let month {
        (try? store.hasEnoughOwnActs(of: user, month: month)) ?? false
      } else { false }
  }

  func note(_ stage: Act.Stage) {
    let process = Act.Fact("pid", "\(client.process)".utf8)
    let act = Act(verb, stage, for: user, facts + [process], via: .session)
    let actor = Actor(
      name: String(decoding: client.account.name.bytes, as: UTF8.self), login: nil, claimed: nil)
    let text = act.text(by: actor)
    var line = LogLine("")
    line.add(Array(text.utf8))
    SessionLog.write(stage == .will ? .info : .notice, line)
    keep(text)
    if stage != .will {
      let (operation, name) = ("sallyport-\(verb.rawValue)", user.text)
      // SAFETY: the C strings live for the call.
      unsafe service_audit(act.auditType, operation, name, stage == .done)
    }
  }

  private func keep(_ text: String) {
    do throws(StoreTrouble) {
      guard let time = try Clock.now().internetText else { return }
      if isTooMuch { return }
      try store.append(acts: ["\(time) \(text)"], month: String(time.prefix(7)))
    } catch {
      if case .noStore = error { return }
      SessionLog.write(
        .error, .trouble(error, user: user.bytes, from: nil, .local(own: true)))
    }
  }
}
