import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// The user that a verb is about, and the store.
struct Subject {
  /// As typed, or the user who called sudo or doas; the account's own name where another spelling
  /// of it was typed, of which nothing is stored.
  var user: String
  let users: UserOptions
  let store: Store
  /// By `--store`.
  let isStoreNamed: Bool
  let output: Output
  let context: Context

  /// The name as typed, where it is another spelling of the account's own and something is stored
  /// under it: that is meant then.
  var entry: UserName?

  /// The account, under the name of what is stored.
  func account() throws(CommandError) -> Account {
    let account = try context.account(user)
    guard let entry else { return account }
    return Account(name: entry, uid: account.uid, group: account.group)
  }

  /// Whether there is an enrollment or a note under exactly this name, whatever is in it.
  func hasEntry(of name: UserName) throws(CommandError) -> Bool {
    do throws(StoreTrouble) {
      if try store.enrolledNames().contains(where: { $0.user == name }) { return true }
      return try store.note(of: name) != UserNote()
    } catch {
      if case .noStore = error { return false }
      if error.isBrokenEnrollment { return true }
      throw .store(error)
    }
  }

  /// The person, whose record the fleet has where this machine is a host of one, the policy
  /// has `verification = fleet` for the user, no store is named, and there are no files here; else
  /// the files, as where what is stored under another spelling is meant. Where the fleet verifies
  /// the codes all the same, says so. `usesPolicy`: whether the verb goes by more of the policy.
  func person(_ options: PolicyOptions? = nil, usesPolicy: Bool = true) throws(CommandError)
    -> any Person
  {
    let person = try unrecorded(options, usesPolicy: usesPolicy)
    return RecordedPerson(person: person, recorder: recorder)
  }

  var recorder: Recorder { Recorder(context: context, store: store, isStoreNamed: isStoreNamed) }

  private func unrecorded(_ options: PolicyOptions?, usesPolicy: Bool) throws(CommandError)
    -> any Person
  {
    let (account, fleet) = (try account(), context.fleet)
    let mayBeInFleet = !isStoreNamed && entry == nil && fleet?.isHost ?? true
    guard mayBeInFleet || usesPolicy else { return files(of: account, under: Policy()) }
    let policy = context.policy(
      at: options?.conf, for: account, in: store, warns: usesPolicy || mayBeInFleet && fleet != nil)
    guard mayBeInFleet, policy.isFleet else { return files(of: account, under: policy) }
    guard let fleet else { throw .noFleet }
    if hasFiles {
      let shown = printable(user.utf8, limit: 64)
      let text = "the files of \(shown) verify no codes: the policy has verification = fleet"
      let hint = "\(fleet.push(of: account, from: store))  # moves them"
      let message = Message(text, .configuration, hints: [hint])
      context.terminal.write(Array(message.written.utf8), to: .aside)
      return files(of: account, under: policy)
    }
    guard account.uid != nil || users.allowMissing else { throw .noSuchUser }
    return fleet.person(account, under: policy, in: context)
  }

  /// The same person as this machine's fleet knows it, whatever the policy says; nil where it is a
  /// host of none, or a store is named.
  func personOfFleet(_ person: any Person) -> (any Person)? {
    guard !isStoreNamed, let fleet = context.fleet, fleet.isHost else { return nil }
    return RecordedPerson(
      person: fleet.person(person.account, under: person.policy, in: context), recorder: recorder)
  }

  /// The person in the files, also where the fleet verifies the codes.
  func files(of account: Account, under policy: Policy) -> LocalPerson {
    LocalPerson(
      account: account, login: .command(under: policy), context: context, store: store,
      allowMissing: users.allowMissing)
  }

  /// Also where they are marked, or cannot be read.
  private var hasFiles: Bool {
    do throws(CommandError) {
      _ = try files(of: account(), under: Policy()).enrolledRecord()
      return true
    } catch {
      if case .store(.noStore) = error.cause { return false }
      return !error.isAbsence
    }
  }
}
