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
    let person = try subject.person(policy, usesPolicy: !force)
    // The fleet keeps no uid: the account's own counts.
    guard !person.isInFleet || uid == nil || uid == person.account.uid else {
      throw .unseenUser(isBroken: false)
    }
    let id = try id(of: person)
    if !force { try person.prove("Verification code: ", try person.enrolled(), subject) }
    try forgetEnrolling(subject)
    if let id { try person.end(id) } else { try removeUnread(subject) }
    let name = printable(subject.user.utf8, limit: 255)
    let place = person.isInFleet ? " in the fleet, on none of its hosts" : ""
    let lines = ["\(name) is no longer enrolled\(place)."] + tokens(of: subject, in: context)
    subject.output.answer(Answer(user: name), lines.joined(separator: "\n"))
  }

  /// What makes the tokens nobody's that the user still has by the inventory.
  private func tokens(of subject: Subject, in context: Context) -> [String] {
    guard let account = try? subject.account(), let held = try? subject.store.heldTokens() else {
      return []
    }
    let own = Invocation(verb: "token unassign", store: shared.storeOptions.store)
    return held.filter { $0.holder?.user == account.name }.map { token in
      let command = own.command("token unassign", shellQuoted(token.serial.text))
      return "To give \(token.serial.text) to somebody else: \(command)"
    }
  }

  /// nil: by `--force`, files that cannot be read.
  private func id(of person: any Person) throws(CommandError) -> UInt64? {
    do throws(CommandError) {
      return try person.enrolledRecord().enrollment.id
    } catch {
      guard force, case .store(let trouble) = error.cause, trouble.isBrokenEnrollment else {
        throw error
      }
      return nil
    }
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

  /// An enrolling that was begun at a login ended with the enrollment that goes now. A file that is
  /// not as it should be keeps nobody enrolled: `status` tells what is wrong with it.
  private func forgetEnrolling(_ subject: Subject) throws(CommandError) {
    let (store, account) = (subject.store, try subject.account())
    do throws(StoreTrouble) {
      guard try store.enrollingBegun(by: account) != nil else { return }
      try store.noteEnrolling(of: account, begun: nil)
    } catch {}
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
