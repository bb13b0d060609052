import OneTimePassword
package import SallyportCore
import SallyportSupport
import SallyportSystem

// The one rule for a name that is typed and is not the account's own, which the account database
// finds all the same: `Lena` or `lena@example.org` for lena.

/// What a verb changes.
enum VerbEffect {
  /// Nothing: it only tells.
  case none
  /// What is stored under a name.
  case onStored
  /// The same, of which the uid was typed as well.
  case onStoredOfUID
  /// The account, for which it stores something.
  case onAccount
}

extension Subject {
  /// The user who is meant by the name as typed. If it is not the account's own, says both, and
  /// asks before anything is changed; refuses without a terminal.
  func meant(for effect: VerbEffect) throws(CommandError) -> Subject {
    guard let name = UserName(Array(user.utf8)) else { return self }
    let own = try account().name
    if own == name { return self }
    var meant = self
    if effect != .onAccount, try hasEntry(of: name) {
      meant.entry = name
    } else {
      guard let typed = own.typed else { throw .otherSpelling(of: own, isStored: false) }
      meant.user = typed
    }
    let isStored = meant.entry != nil
    if effect == .onStoredOfUID, isStored { return meant }
    try context.agree(
      that: user, is: own, isStored: isStored, changes: effect != .none, output)
    return meant
  }
}

extension Context {
  /// Asks whether the account is meant by the name `typed`, which is not its `own`; or what is
  /// stored under the name as typed. Throws without a terminal. Where nothing `changes`, only says
  /// it.
  func agree(
    that typed: String, is own: UserName, isStored: Bool = false, changes: Bool = true,
    _ output: Output
  ) throws(CommandError) {
    let shown = printable(typed.utf8, limit: 255)
    let fact =
      "\(shown) is the account \(own.text)"
      + (isStored ? "; what is stored as \(shown) counts in no login" : "")
    guard changes else { return output.warn(fact) }
    guard terminal.isInteractive else { throw .otherSpelling(of: own, isStored: isStored) }
    let name = isStored ? shown : own.text
    try output.insist("\(fact). Go on with \(name)?", or: .nothingChanged)
  }

  /// The account that is meant by the name as typed, for a verb about accounts.
  package func meantAccount(_ name: String, _ output: Output) throws(CommandError) -> Account {
    let account = try account(name)
    guard let typed = UserName(Array(name.utf8)), account.name != typed else { return account }
    try agree(that: name, is: account.name, output)
    return account
  }
}

extension CommandError {
  /// The name that was typed is another spelling of this account's; and whether something is stored
  /// under it.
  fileprivate static func otherSpelling(of own: UserName, isStored: Bool) -> CommandError {
    CommandError { invocation in
      let named = Invocation(verb: invocation.verb, user: own.typed, store: invocation.store)
      let more = isStored ? ", and something is stored as \(invocation.who) too" : ""
      let hint =
        isStored
        ? invocation.again(remark: "on a terminal asks about what is stored")
        : named.user == nil
          ? "getent passwd"
          : named.command(invocation.verb, remark: "with the same options, if that is meant")
      return Message(
        "\(invocation.who) is the account \(own.text)\(more): nothing was changed", .usage,
        hints: [hint])
    }
  }
}
