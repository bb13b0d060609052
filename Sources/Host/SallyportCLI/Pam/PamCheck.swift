import Glibc
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport

/// `sallyport pam status --check`: whether everything that was turned on still is. Run when one of
/// the files has changed. Records what asks and is not recorded.
struct PamCheck {
  let context: Context
  /// How long the files have to have been left alone, in seconds.
  let settle: Int64
  let shared: StoreOptions

  /// Seconds after which files that never come to rest are looked at all the same.
  private static let patience = 60
  private static let rounds = 5
  private var told: String { context.stacks.root + ServiceRecord.directory + "/.told" }

  /// Returns 0 if nothing is lost and all could be compared, else 1, and tells the log of each loss
  /// once. What is told is the state in which the files were left: if one changes meanwhile,
  /// systemd does not start it again.
  func status() throws(CommandError) -> Int32 {
    adoptNotes()
    for round in 1...PamCheck.rounds {
      let times = settledTimes()
      let isLast = { round == PamCheck.rounds || times == context.machine.changesOfLogins }
      if hasNothingToDo {
        if isLast() { return 0 }
        continue
      }
      // Another command may be between two steps of a change.
      let lock = try context.lockPam(waiting: true)
      for service in context.machine.unrecordedServices { context.keepRecord(of: service) }
      let lost = context.machine.lostOrUnseenServices()
      let isDone = isLast()
      if isDone { tell(lost) }
      lock.end()
      if isDone { return lost.isEmpty ? 0 : 1 }
    }
    return 1
  }

  /// On machines whose packages run no programs when they are installed, nothing else does. What
  /// loosens is left to root's `prepare`.
  private func adoptNotes() {
    guard let store = try? context.store(shared) else { return }
    context.tellOfMachine(store, named: shared.store)
    for text in context.adoptNotes(in: store, shared, isOrdered: false) {
      context.output(shared).warn(text)
    }
  }

  private var hasNothingToDo: Bool {
    context.machine.lostOrUnseenServices().isEmpty && context.machine.unrecordedServices.isEmpty
      && (try? facts(of: told)) == nil
  }

  private func settledTimes() -> [String: Int64] {
    for _ in 0..<PamCheck.patience {
      let times = context.machine.changesOfLogins
      let age = Int64(Glibc.time(nil)) - (times.values.max() ?? 0)
      // A time to come says nothing.
      if age >= settle || age < 0 { return times }
      sleep(1)
    }
    return context.machine.changesOfLogins
  }

  /// Once for each change: the text has the time of the change. If it cannot be kept what was told,
  /// it is told again.
  private func tell(_ lost: [LostService]) {
    let before = (try? OpenFile(told, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).bytes(1 << 20)) ?? []
    let known = String(decoding: before, as: UTF8.self).split(separator: "\n").map(String.init)
    for one in lost where !known.contains(one.text) {
      context.tellLog(one.isUnseen ? LOG_WARNING : LOG_ALERT, one.text)
    }
    // What was lost before may be lost still, and is no news when it is seen again.
    let unseen = lost.filter(\.isUnseen)
    let texts =
      lost.map(\.text)
      + known.filter { text in
        unseen.contains { text.hasPrefix("\($0.service) no longer asks ") }
      }
    if texts.isEmpty {
      removeFile(told)
    } else if texts != known {
      try? context.replacePrivateFile(told, texts.map { $0 + "\n" }.joined())
    }
    for one in lost {
      let message = Message("warning: \(one.text)", .configuration, hints: one.commands)
      context.terminal.write(Array(message.written.utf8), to: .aside)
    }
  }
}
