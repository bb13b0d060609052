import Glibc
package import SallyportAdministration
package import SallyportCore
import SallyportSupport
import SallyportSystem

/// Where the acts of this command are recorded: in the system's log, and in the file of acts of the
/// store. Nothing waits or fails for the want of either.
package struct Recorder {
  let context: Context
  let store: Store
  /// By `--store`.
  let isStoreNamed: Bool

  /// Calls `body` between a line before and a line after: a crash between the two hides nothing.
  /// Of somebody who is not root nothing is recorded: anybody can make a store of his own.
  /// `isDone`: whether something was changed.
  package func record<Value, Fault: Error>(
    _ verb: Act.Verb, for user: UserName? = nil, _ facts: [Act.Fact] = [],
    isDone: (Value) -> Bool = { _ in true }, _ body: () throws(Fault) -> Value
  ) throws(Fault) -> Value {
    // What is removed with all that the store has does not come back by its own end.
    func note(_ stage: Act.Stage) {
      self.note([Act(verb, stage, for: user, facts)], inFile: verb != .empty || stage == .will)
    }
    note(.will)
    do throws(Fault) {
      let value = try body()
      note(isDone(value) ? .done : .failed)
      return value
    } catch {
      note(.failed)
      throw error
    }
  }

  /// Lines of one moment.
  package func note(_ acts: [Act], inFile: Bool = true) {
    guard context.effectiveUser == 0, !acts.isEmpty else { return }
    let place = isStoreNamed ? [Act.Fact("store", store.root.bytes)] : []
    let actor = context.actor
    let texts = acts.map { act in
      let text = Act(act.verb, act.stage, for: act.user, act.facts + place, via: act.way)
        .text(by: actor)
      context.tellLog(act.stage == .will ? LOG_INFO : LOG_NOTICE, text)
      if act.stage != .will {
        context.audit(
          act.auditType, "sallyport-\(act.verb.rawValue)", act.user?.text, act.stage == .done)
      }
      return text
    }
    if inFile { keep(texts, warns: !acts.contains { $0.stage == .will }) }
  }

  private func keep(_ texts: [String], warns: Bool) {
    do throws(StoreTrouble) {
      guard let time = try context.now().internetText else { return }
      try store.append(acts: texts.map { "\(time) \($0)" }, month: String(time.prefix(7)))
    } catch {
      // Where there is no store, nothing is kept of what is done.
      if case .noStore = error { return }
      guard warns else { return }
      let reason = Message(error, at: Invocation(verb: "log", store: nil)).text
      let text = "sallyport: warning: \(reason): sallyport log will not show this act\n"
      context.terminal.write(Array(text.utf8), to: .aside)
    }
  }
}

extension Context {
  /// Of what is done to the store that the options name, or to this machine.
  package func recorder(_ options: StoreOptions) throws(CommandError) -> Recorder {
    Recorder(context: self, store: try store(options), isStoreNamed: options.store != nil)
  }

  /// Of what is done to this machine, whatever store is named.
  var machineRecorder: Recorder { Recorder(context: self, store: usualStore, isStoreNamed: false) }

  /// Who runs this verb.
  fileprivate var actor: Actor {
    let login = loginUID()
    func name(_ uid: UInt32) -> String? {
      (try? Accounts.name(of: uid)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
    }
    return Actor(
      name: name(effectiveUser) ?? "\(effectiveUser)",
      login: login.map { ($0, name($0)) }, claimed: caller)
  }
}
