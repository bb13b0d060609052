import Foundation
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import SessionProtocol
import Testing

@testable import SallyportSession

/// The list "Ways to climb" in docs/threat-model.md names each of these.
@Suite struct `A helper who wants more than he may` {
  /// Nothing is done and nothing counted, whatever is asked.
  private func refused(
    _ name: String, _ wanted: ChangeRefusal, in desk: Helpdesk, by helper: String = "carol",
    between: @escaping () throws -> Void = {},
    meanwhile: (SessionConnection) throws -> Void = { _ in }
  ) throws {
    for act in Helpdesk.acts {
      let end = try desk.help(act, name, by: helper, between: between, meanwhile: meanwhile)
      guard case .refused(let refusal, _) = end, refusal == wanted else {
        Issue.record("\(act) of \(name): \(end), not \(wanted)")
        continue
      }
    }
    for other in ["bob", "carol", "hana"] {
      #expect(try desk.passes(of: other) == 0 && !desk.isBlocked(other))
    }
    #expect(desk.counted("by-3001") == nil)
  }

  // decisive
  // shows: climb-mistake, climb-nobody
  @Test func `is none where there is no helpdesk, or he is not in it`() throws {
    for lines in [
      "", "helpdesk_for = staff\n", "helpdesk = nobodies\nhelpdesk_for = staff\n",
      "helpdesk = board\nhelpdesk_for = staff\n",
      "helpdesk = helpers, staff\nhelpdesk_for = staff\n",
      "\(Helpdesk.lines)helpdesk_nevr = x\n", "\(Helpdesk.lines)helpdesk_may = all\n",
      "\(Helpdesk.lines)[rule a]\nmatch_user = a\nhelpdesk_may = pass\n",
      "\(Helpdesk.lines)look_ahead = no\n",
    ] {
      let desk = try Helpdesk(lines)
      try refused("bob", .notHelper, in: desk)
      #expect(desk.prompts == [], "\(lines)")
    }
    let desk = try Helpdesk()
    try refused("hana", .notHelper, in: desk, by: "bob")
    // Nobody else learns who has an account.
    try refused("nobody-here", .notHelper, in: desk, by: "bob")
  }

  // decisive
  // shows: climb-root, climb-self
  @Test func `helps nobody whom he may not`() throws {
    let desk = try Helpdesk()
    desk.world.groups["board"] = ["dora"]
    for name in [
      "root", "toor", "carol", "carla", "hana", "bobby", "dora", "nobody-here", "BOB",
    ] {
      try refused(name, .notHelped, in: desk)
      #expect(desk.prompts == [], "\(name)")
    }
    desk.world.power = ["bob": .some("/etc/sudoers:7")]
    try refused("bob", .notHelped, in: desk)
    desk.world.power = [:]
    desk.world.groups["staff"] = []
    try refused("bob", .notHelped, in: desk)
    try desk.policy("helpdesk = helpers\n\(Helpdesk.may)")
    try refused("bob", .notHelped, in: desk)
  }

  // decisive
  // shows: climb-group
  @Test func `helps nobody about whom too little is known`() throws {
    let desk = try Helpdesk()
    for group in ["staff", "board"] {
      desk.world.late = [group]
      try refused("bob", .unclear, in: desk)
    }
    desk.world.late = ["helpers"]
    try refused("bob", .notHelper, in: desk)
    desk.world.late = []
    desk.world.power = ["bob": .unknown("/etc/sudoers:7: not understood")]
    try refused("bob", .unclear, in: desk)
    desk.world.power = [:]
    try desk.policy(
      "helpdesk = helpers\nhelpdesk_for = staff\nhelpdesk_never = no-such-group\n\(Helpdesk.may)")
    try refused("bob", .unclear, in: desk)
    desk.world.isAway = true
    try refused("bob", .failed, in: desk)
  }

  // decisive
  // shows: climb-may
  @Test func `does only what helpdesk_may names`() throws {
    for (line, verbs) in [
      ("helpdesk_may = unlock\n", [HelpVerb.unlock]), ("helpdesk_may = block\n", [.block]),
      ("helpdesk_may = pass\n", [.pass]), ("helpdesk_may = pass-enroll\n", [.passEnroll]),
      // It says nothing.
      ("", [.status, .unlock, .pass]),
    ] {
      let desk = try Helpdesk(Helpdesk.lines + line)
      for act in Helpdesk.acts where !verbs.contains(act.verb) {
        guard case .refused(.notForHelpers, _) = try desk.help(act, "bob") else {
          Issue.record("\(act) by \(line)")
          continue
        }
        #expect(desk.prompts == [])
      }
    }
  }

  @Test func `helps nobody who is not enrolled, or of a fleet that does not do it`() throws {
    let desk = try Helpdesk()
    for act in [HelpAct.status, .unlock, .pass, .passEnroll] {
      guard case .refused(.helpedNotEnrolled, _) = try desk.help(act, "dora") else {
        Issue.record("\(act)")
        continue
      }
    }
    try desk.policy("\(Helpdesk.lines)\(Helpdesk.may)verification = fleet\n")
    for act in Helpdesk.acts {
      guard case .refused = try desk.help(act, "bob") else {
        Issue.record("\(act)")
        continue
      }
    }
  }

  /// What of somebody root alone sees, or his own account.
  private static let secrets: [@Sendable (Helpdesk) throws -> Void] = [
    { _ in },
    { $0.world.power = ["bob": .some("/etc/sudoers:7")] },
    { $0.world.power = ["bob": .unknown("/etc/sudoers:7: not understood")] },
    { _ = try $0.store.end(try $0.account("bob"), id: 3003) },
    { _ = try $0.store.block(try $0.account("bob"), until: nil, at: UnixTime(1)) },
    {
      _ = try $0.store.block(
        try $0.account("bob"), until: nil, at: UnixTime(1), by: UserName("hana".utf8))
    },
    { try $0.count("for-3002", "pass 1\n") },
    { try $0.count("for-3002", "no such file") },
  ]

  // decisive
  // shows: climb-nobody
  @Test func `learns nothing of others before his own password and code were right`() throws {
    for spoil in Self.secrets {
      let desk = try Helpdesk()
      try spoil(desk)
      for act in Helpdesk.acts {
        desk.acceptsPassword = false
        guard case .refused(.password, _) = try desk.help(act, "bob") else {
          Issue.record("\(act)")
          continue
        }
        #expect(desk.told == [] && desk.prompts == [])
      }
      desk.acceptsPassword = true
      var ends: [FromSession] = []
      for act in Helpdesk.acts.prefix(3) {
        ends.append(try desk.help(act, "bob", typing: "000000"))
      }
      for end in ends {
        guard case .refused(.code, _) = end else {
          Issue.record("\(end)")
          continue
        }
      }
      #expect(desk.told == ["For bob (uid 3002): a pass, good for one login within two hours."])
    }
  }

  // decisive
  // shows: climb-own-code
  @Test func `needs a password and a code of his own, and no pass of his`() throws {
    let desk = try Helpdesk()
    desk.acceptsPassword = false
    try refused("bob", .password, in: desk)
    desk.acceptsPassword = true
    let wrong = try desk.help(.pass, "bob", typing: "000000")
    guard case .refused(.code, _) = wrong else {
      Issue.record("\(wrong)")
      return
    }
    guard case .passed(_, let code, _) = try desk.help(.pass, "bob") else {
      Issue.record("no pass")
      return
    }
    // bob becomes a helper: the pass that he has proves none of his changes.
    desk.world.groups["helpers"] = ["bob"]
    desk.world.groups["staff"] = ["carol"]
    let typed = String(decoding: code.bytes(in: 0..<code.count), as: UTF8.self)
    let end = try desk.help(.pass, "carol", by: "bob", typing: typed)
    guard case .refused(.code, _) = end else {
      Issue.record("\(end)")
      return
    }
    desk.world.groups["helpers"] = ["dora"]
    guard case .refused(.notEnrolled, _) = try desk.help(.pass, "carol", by: "dora") else {
      Issue.record("a helper who is not enrolled")
      return
    }
  }

  /// What happens between the two decisions, each with how it ends.
  private static let changes: [(what: String, ChangeRefusal, @Sendable (Helpdesk) throws -> Void)] =
    [
      ("renamed", .notHelped, { $0.world.accounts["bob"] = nil }),
      (
        "another account", .changed,
        { desk in
          (desk.world.accounts["bob"], desk.world.owners[3009]) = (3009, "bob")
          try desk.enroll("bob", uid: 3009, id: 3003)
        }
      ),
      (
        "blocked now", .blockedByRoot,
        { _ = try $0.store.block(try $0.account("bob"), until: nil, at: UnixTime(1)) }
      ),
      ("root now", .notHelped, { $0.world.power["bob"] = .some("group sudo") }),
      ("maybe root now", .unclear, { $0.world.power["bob"] = .unknown("x") }),
      ("never now", .notHelped, { $0.world.groups["board"] = ["bob"] }),
      ("a group that answers late", .unclear, { $0.world.late = ["board"] }),
      ("a helper now", .notHelped, { $0.world.groups["helpers"]?.insert("bob") }),
      ("the helper is none any more", .notHelper, { $0.world.groups["helpers"] = ["hana"] }),
      ("policy", .notHelper, { try $0.policy("self_service = yes\n") }),
      (
        "policy of verbs", .notForHelpers,
        { try $0.policy("\(Helpdesk.lines)helpdesk_may = unlock\n") }
      ),
      (
        "policy of somebody", .changed, { try $0.policy("\(Helpdesk.lines)guess_budget = 0.5 %\n") }
      ),
      ("disabled", .disabled, { try $0.policy("\(Helpdesk.lines)state = disabled\n") }),
      ("the helper was enrolled again", .changed, { try $0.enroll("carol", id: 98) }),
    ]

  // decisive
  // shows: climb-renamed, climb-group
  @Test(arguments: changes.indices)
  func `is refused where something changes after the password, or while the code is typed`(
    _ index: Int
  ) throws {
    let (what, wanted, change) = Self.changes[index]
    for isLate in [false, true] {
      let desk = try Helpdesk()
      var end: FromSession
      if isLate {
        end = try desk.help(.pass, "bob", meanwhile: { _ in try change(desk) })
      } else {
        end = try desk.help(.pass, "bob", between: { try change(desk) })
      }
      // His code is for an enrollment that is gone then.
      if what == "the helper was enrolled again", isLate, case .refused(.failed, let about) = end {
        end = .refused(.changed, about)
      }
      guard case .refused(let refusal, _) = end, refusal == wanted else {
        Issue.record("\(what): \(end), not \(wanted)")
        continue
      }
      #expect(desk.counted("by-3001") == nil, "\(what)")
      for name in ["bob", "carol", "hana"] { #expect(try desk.passes(of: name) == 0, "\(what)") }
    }
  }

  // decisive
  // shows: climb-more
  @Test func `does nothing where the connection was left, or more was sent, after the code`() throws
  {
    let desk = try Helpdesk()
    let end = try desk.help(
      .pass, "bob",
      meanwhile: { connection in
        // What another process would send that has the descriptor.
        let code = try #require(Secret(desk.nextCode().utf8))
        for _ in 0..<2 { _ = connection.send(FromUser.answer(code).encoded()) }
      })
    guard case .refused = end else {
      Issue.record("\(end)")
      return
    }
    #expect(try desk.passes(of: "bob") == 0 && desk.counted("by-3001") == nil)
  }
}
