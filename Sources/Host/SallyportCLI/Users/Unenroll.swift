import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport unenroll`
struct Unenroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Remove a user's enrollment, after checking a code.")

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Flag(help: "Remove it without a code.")
  var force = false

  @Option(
    help: ArgumentHelp("The uid of the enrollment, where there is no account.", valueName: "n"))
  var uid: UInt32?

  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    let user: String
    var removed = true
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(
      in: context, for: uid == nil ? .onStored : .onStoredOfUID)
    try mustBeMeant(subject)
    if let person = try subject.inFleet(policy) { return try end(person, subject) }
    if !force {
      _ = try subject.record()
      try subject.prove("Verification code: ", under: try subject.policy(policy))
    }
    try forgetEnrolling(subject)
    try context.settled(at: subject.path) { () throws(CommandError) in try remove(subject) }
    tell("is no longer enrolled.", subject)
  }

  /// A name that is not found may be that of somebody whose directory is away: then the uid that
  /// was recorded has to be typed. One that is typed is always compared.
  private func mustBeMeant(_ subject: Subject) throws(CommandError) {
    let (store, account) = (subject.store, try subject.account())
    guard uid != nil || account.uid == nil else { return }
    let found: Record?
    do throws(StoreTrouble) {
      guard let name = try store.enrolledNames().first(where: { $0.user == account.name }) else {
        return
      }
      found = try store.load(stored: name)
    } catch {
      if case .noStore = error { return }
      throw error.isBrokenEnrollment ? .unseenUser(isBroken: true) : .store(error)
    }
    guard let recorded = found?.enrollment.uid else {
      guard found == nil || uid == nil else { throw .unseenUser(isBroken: false) }
      return
    }
    guard uid == recorded else { throw .unseenUser(isBroken: false) }
  }

  private func end(_ person: any FleetAccount, _ subject: Subject) throws(CommandError) {
    // The fleet keeps no uid: the account's own counts.
    guard uid == nil || uid == person.account.uid else { throw .unseenUser(isBroken: false) }
    let found = try person.record().enrolled.get()
    if !force {
      try person.prove("Verification code: ", try person.enrolled(), subject)
    }
    try forgetEnrolling(subject)
    try person.end(found.enrollment.id)
    tell("is no longer enrolled in the fleet, on none of its hosts.", subject)
  }

  private func tell(_ what: String, _ subject: Subject) {
    let name = printable(subject.user.utf8, limit: 255)
    subject.output.answer(Answer(user: name), "\(name) \(what)")
  }

  /// An enrolling that was begun at a login ended with the enrollment that goes now. A file that is
  /// not as it should be keeps nobody enrolled: `status` tells what is wrong with it.
  private func forgetEnrolling(_ subject: Subject) throws(CommandError) {
    let (store, account) = (subject.store, try subject.account())
    do throws(StoreTrouble) {
      guard try store.enrollingBegun(by: account) != nil else { return }
      try store.noteEnrolling(of: account, begun: nil)
    } catch {}
  }

  private func remove(_ subject: Subject) throws(CommandError) -> Transaction<Void> {
    let record: Record
    do throws(CommandError) {
      record = try subject.record()
    } catch {
      guard force, case .store(let trouble) = error.cause, trouble.isBrokenEnrollment else {
        throw error
      }
      try removeUnread(subject)
      return .committed(())
    }
    return try storing { () throws(StoreTrouble) in try subject.store.remove(record) }
  }

  /// Removes what is stored under the user's name, without reading it.
  private func removeUnread(_ subject: Subject) throws(CommandError) {
    let (store, account) = (subject.store, try subject.account())
    let removed = try storing { () throws(StoreTrouble) in
      guard let name = try store.enrolledNames().first(where: { $0.user == account.name }) else {
        return false
      }
      return try store.remove(stored: name)
    }
    guard removed else { throw .notEnrolled }
  }
}

extension CommandError {
  /// No account of that name can be seen, and the recorded uid was not typed, or another one.
  /// `isBroken`: that uid cannot be read.
  fileprivate static func unseenUser(isBroken: Bool) -> CommandError {
    CommandError {
      Message(
        isBroken
          ? "\($0.who) is not found, and the uid in the enrollment cannot be read: nothing was "
            + "changed"
          : "\($0.who) was enrolled with another uid than the one given; if there is no account, "
            + "a directory may be away: nothing was changed without its --uid",
        .noUser, hints: [$0.lookup])
    }
  }
}
