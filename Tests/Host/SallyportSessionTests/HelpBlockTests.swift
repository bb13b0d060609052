import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import SessionProtocol
import TestSupport
import Testing

@testable import SallyportSession

@Suite struct `A helper who blocks` {
  private func isDone(_ end: FromSession) -> Bool {
    if case .done(let user, let codes, _) = end {
      user.text == "bob" && codes.isEmpty
    } else {
      false
    }
  }

  private func refusal(_ end: FromSession) -> ChangeRefusal? {
    if case .refused(let refusal, _) = end { refusal } else { nil }
  }

  /// By root, in the store.
  private func block(_ desk: Helpdesk, until: UnixTime? = nil) throws {
    let now = try Clock.now()
    #expect(try desk.store.block(try desk.account("bob"), until: until, at: now) == .done)
  }

  private func setters(_ desk: Helpdesk) throws -> [String?] {
    try desk.store.blocks(of: try desk.account("bob")).map { $0.block?.helper?.text }
  }

  @Test func `shuts somebody out, ends his passes, and is named in it`() throws {
    let desk = try Helpdesk()
    _ = try desk.help(.pass, "bob")
    #expect(try desk.passes(of: "bob") == 1)
    #expect(isDone(try desk.help(.block(until: nil), "bob")))
    #expect(try desk.isBlocked("bob") && desk.passes(of: "bob") == 0)
    #expect(try setters(desk) == ["carol", "carol"])
    #expect(desk.told == ["For bob (uid 3002): nothing is accepted any more."])
    #expect(desk.prompts == ["Verification code to block bob: "])
    let acts = desk.acts().filter { $0.contains("act=block by=carol for=bob") }
    #expect(acts.map { $0.split(separator: " ").last } == ["stage=will", "stage=done"])
    #expect(desk.acts().last?.contains("act=revoke by=carol for=bob") == true)
    // Nothing else is done for him meanwhile.
    for act in [HelpAct.pass, .passEnroll, .unlock, .status] {
      #expect(refusal(try desk.help(act, "bob")) == .blockedByHelper)
    }
    // Another helper lifts it.
    #expect(isDone(try desk.help(.unblock, "bob", by: "hana")))
    #expect(try !desk.isBlocked("bob") && setters(desk) == [])
    #expect(refusal(try desk.help(.unblock, "bob")) == .notBlocked)
    #expect(desk.acts().contains { $0.contains("act=unblock by=hana for=bob") })
  }

  @Test func `does it up to a day that is to come, and for who is not enrolled`() throws {
    let desk = try Helpdesk()
    let now = try Clock.now().seconds
    #expect(refusal(try desk.help(.block(until: UnixTime(now)), "bob")) == .changed)
    #expect(try !desk.isBlocked("bob"))
    let end = UnixTime(now + 86_400)
    #expect(isDone(try desk.help(.block(until: end), "bob")))
    #expect(desk.told[0].contains("any more, up to 20"))
    #expect(try desk.store.blocks(of: try desk.account("bob")).map(\.block?.until) == [end, end])
    #expect(isDone(try desk.help(.block(until: nil), "bob")))
    #expect(desk.told.last?.hasPrefix("before this it was blocked up to 20") == true)
    guard case .done = try desk.help(.block(until: nil), "dora") else {
      Issue.record("dora")
      return
    }
    #expect(try desk.isBlocked("dora"))
  }

  @Test func `does it where what is enrolled is damaged, and says what was not ended`() throws {
    let desk = try Helpdesk()
    let file = URL(fileURLWithPath: desk.directory.path + "/store/users/bob/enrollment")
    try Data("no enrollment\n".utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    #expect(refusal(try desk.help(.pass, "bob")) == .failed)
    #expect(isDone(try desk.help(.block(until: nil), "bob")))
    #expect(try desk.isBlocked("bob") && desk.told.last?.hasPrefix("the passes were not") == true)
    #expect(isDone(try desk.help(.unblock, "bob")))
  }

  // decisive
  // shows: climb-block
  @Test func `neither lifts nor changes what root has blocked`() throws {
    let desk = try Helpdesk()
    let soon = UnixTime(try Clock.now().seconds + 60)
    for isFirst in [false, true] {
      if isFirst { _ = try desk.help(.block(until: nil), "bob") }
      try block(desk)
      for act in Helpdesk.acts {
        #expect(refusal(try desk.help(act, "bob")) == .blockedByRoot)
      }
      #expect(refusal(try desk.help(.block(until: soon), "bob")) == .blockedByRoot)
      #expect(try desk.isBlocked("bob") && setters(desk) == [nil, nil])
      let account = try desk.account("bob")
      #expect(try desk.store.unblock(account, at: soon) { desk.world.account($0) } == .done)
    }
    // One of the two files is enough.
    for file in ["blocked/bob", "blocked-uids/3002"] {
      try block(desk)
      let kept = try Data(contentsOf: URL(fileURLWithPath: desk.directory.path + "/store/" + file))
      #expect(
        try desk.store.unblock(try desk.account("bob"), at: soon) { desk.world.account($0) }
          == .done)
      _ = try desk.help(.block(until: nil), "bob")
      try kept.write(to: URL(fileURLWithPath: desk.directory.path + "/store/" + file))
      #expect(refusal(try desk.help(.unblock, "bob")) == .blockedByRoot)
      #expect(try desk.isBlocked("bob"))
      #expect(
        try desk.store.unblock(try desk.account("bob"), at: soon) { desk.world.account($0) }
          == .done)
    }
  }

  // decisive
  // shows: climb-block
  @Test func `changes nothing where root was faster`() throws {
    let desk = try Helpdesk()
    let (store, account, now) = (desk.store, try desk.account("bob"), try Clock.now())
    let (carol, find) = (UserName("carol".utf8), { desk.world.account($0) })
    try block(desk)
    #expect(try store.block(account, until: now, at: now, by: carol) == .isRoots)
    #expect(try store.unblock(account, at: now, by: carol, find) == .isRoots)
    #expect(try setters(desk) == [nil, nil] && desk.isBlocked("bob"))
    // Root's that is over is in nobody's way.
    #expect(try store.unblock(account, at: now, find) == .done)
    try block(desk, until: UnixTime(now.seconds - 1))
    #expect(try store.block(account, until: nil, at: now, by: carol) == .done)
    #expect(try store.unblock(account, at: now, by: carol, find) == .done)
    #expect(try !desk.isBlocked("bob"))
  }

  // decisive
  // shows: climb-block
  @Test func `gives no pass to whom root blocks at that moment`() throws {
    // From the first question on, up to the change itself.
    for number in 1...20 {
      let desk = try Helpdesk()
      let (store, account) = (desk.store, try desk.account("bob"))
      var asked = 0
      desk.world.meanwhile = {
        asked += 1
        if asked == number { _ = try? store.block(account, until: nil, at: UnixTime(1)) }
      }
      let end = try desk.help(.pass, "bob")
      if asked < number {
        #expect(number > 5)
        return
      }
      #expect(refusal(end) == .blockedByRoot, "\(number)")
      #expect(try desk.passes(of: "bob") == 0, "\(number)")
    }
    Issue.record("no end")
  }

  @Test func `does ten acts a day with all that he blocks and lifts`() throws {
    let desk = try Helpdesk()
    let now = try Clock.now().seconds
    try desk.count("by-3001", (Int64(0)..<8).map { "block \(now - 86_000 + $0)\n" }.joined())
    #expect(isDone(try desk.help(.block(until: nil), "bob")))
    #expect(isDone(try desk.help(.unblock, "bob")))
    #expect(refusal(try desk.help(.block(until: nil), "bob")) == .helpedToday)
    #expect(refusal(try desk.help(.pass, "bob")) == .helpedToday)
    #expect(try !desk.isBlocked("bob"))
  }
}
