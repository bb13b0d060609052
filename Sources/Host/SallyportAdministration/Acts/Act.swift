package import SallyportCore

/// A change by which somebody logs in otherwise than before, or is asked otherwise: one line of the
/// system's log and of the file of acts, with the same keys whatever made the change.
package struct Act: Equatable, Sendable {
  /// Named as the verb of the command that does it.
  package enum Verb: String, CaseIterable, Sendable {
    case enroll, unenroll, add, remove, rename, unlock, resync, forget, require, exempt, pass
    case restore
    case block, unblock
    /// All passes end.
    case revoke
    case backupCodes = "backup-codes"
    /// The level of the policy holds again.
    case level
    case adopt, `import`, prepare
    case tokenAssign = "token-assign"
    case tokenUnassign = "token-unassign"
    case tokenForget = "token-forget"
    /// A store that was copied became this machine's.
    case newMachine = "prepare-new-machine"
    /// Everything was removed, for an image.
    case empty = "prepare-empty"
    case pamEnable = "pam-enable"
    case pamDisable = "pam-disable"
    case pamConfirm = "pam-confirm"
    case pamRevert = "pam-revert"
    case configEdit = "config-edit"
    case configInstall = "config-install"
    case fleetJoin = "fleet-join"
    case fleetLeave = "fleet-leave"
    case fleetPush = "fleet-push"
    case fleetTake = "fleet-take"
    /// A host got the secrets of somebody whom it takes.
    case fleetFetch = "fleet-fetch"
  }

  /// A change that may have been made although its end was not seen has a line before it, too.
  package enum Stage: String, CaseIterable, Sendable { case will, done, failed }

  /// Which program made the change.
  package enum Way: String, CaseIterable, Sendable {
    case command, session, login, service, fleet, verifier
  }

  package let verb: Verb
  package let stage: Stage
  /// nil: it is about nobody alone.
  package let user: UserName?
  /// What more is to say: keys and values, which somebody may have chosen.
  package let facts: [Fact]
  package let way: Way

  /// What the value says is escaped where it is written.
  package struct Fact: Hashable, Sendable {
    package let key: String
    package let value: [UInt8]

    package init(_ key: String, _ value: some Collection<UInt8>) {
      (self.key, self.value) = (key, Array(value))
    }
  }

  package init(
    _ verb: Verb, _ stage: Stage, for user: UserName?, _ facts: [Fact] = [],
    via way: Way = .command
  ) {
    (self.verb, self.stage, self.user, self.facts) = (verb, stage, user, facts)
    self.way = way
  }

  /// `act=remove by=root(carol) loginuid=1000 for=alice authenticator=phone via=command stage=done`
  package func text(by actor: Actor) -> String {
    let person = user.map { ["for=\(Act.field($0.bytes))"] } ?? []
    let words =
      ["act=\(verb.rawValue)"] + actor.words + person
      + facts.map { "\($0.key)=\(Act.field($0.value))" }
    return (words + ["via=\(way.rawValue)", "stage=\(stage.rawValue)"]).joined(separator: " ")
  }

  /// A value that may be of somebody's choice: never like a further key.
  package static func field(_ value: [UInt8]) -> String {
    String(decoding: escaped(value, asField: true), as: UTF8.self)
  }
}

/// Who does something, by what the kernel knows; what the environment claims is told as a claim.
package struct Actor: Equatable, Sendable {
  /// The name of the effective user.
  package let name: String
  /// /proc/self/loginuid, which a session gets once, and sudo and su keep; nil: none was set.
  package let login: (uid: UInt32, name: String?)?
  /// SUDO_USER or DOAS_USER.
  package let claimed: String?

  package init(name: String, login: (uid: UInt32, name: String?)?, claimed: String?) {
    (self.name, self.login, self.claimed) = (name, login, claimed)
  }

  package static func == (a: Actor, b: Actor) -> Bool { a.words == b.words }

  var words: [String] {
    let own = Act.field(Array(name.utf8))
    guard let login else {
      let claim = claimed.map { ["claimed=\(Act.field(Array($0.utf8)))"] } ?? []
      return ["by=\(own)"] + claim
    }
    let person = login.name.map { "(\(Act.field(Array($0.utf8))))" } ?? ""
    return ["by=\(own)\(login.name == name ? "" : person)", "loginuid=\(login.uid)"]
  }
}
