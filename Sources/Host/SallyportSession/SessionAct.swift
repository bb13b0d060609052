import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The lines of a change that the user makes of his own enrollment: in the log of the system, and in
/// the file of acts of the store. Nothing waits or fails for the want of either.
struct SessionAct {
  let store: Store
  let user: UserName
  let change: EnrollmentChange
  /// The other end.
  let process: Int32

  func note(_ stage: Act.Stage) {
    let (verb, facts) = Act.told(change)
    let act = Act(
      verb, stage, for: user, facts + [Act.Fact("pid", "\(process)".utf8)], via: .session)
    let actor = Actor(
      name: String(decoding: user.bytes, as: UTF8.self), login: nil, claimed: nil)
    let text = act.text(by: actor)
    var line = LogLine("")
    line.add(Array(text.utf8))
    SessionLog.write(stage == .will ? .info : .notice, line)
    keep(text)
  }

  private func keep(_ text: String) {
    do throws(StoreTrouble) {
      guard let time = try Clock.now().internetText else { return }
      try store.append(acts: ["\(time) \(text)"], month: String(time.prefix(7)))
    } catch {
      if case .noStore = error { return }
      SessionLog.write(
        .error, .trouble(error, user: user.bytes, from: nil, .local(own: true)))
    }
  }
}
