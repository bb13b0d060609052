import OneTimePassword
import SallyportCore
import SallyportLogin
import TestSupport
import Testing

@Suite struct `A new authenticator` {
  /// Two accounts of one machine must not look alike to an app, which keeps one of the two.
  @Test(arguments: [
    (Array("alice".utf8), "alice"), ([0xc3], "%C3"), ([0xc3, 0xa9], "\u{e9}"),
    (Array(repeating: 0x61, count: 63) + [0xc3, 0xa9], String(repeating: "a", count: 63) + "%"),
  ])
  func `names the account as its user is named`(name: [UInt8], label: String) throws {
    let user = try #require(UserName(name))
    let secret = try #require(Secret(count: 20))
    let draft = try Draft(
      for: user, named: Label("phone"), .standard, secret: secret, issuer: Label("web1"),
      at: UnixTime(0))
    #expect(draft.account.text == label)
  }

  @Test func `has the ending of its try in the account, however long the name`() throws {
    for (name, label) in [
      (Array("bob".utf8), "bob-4f2c"), ([0xc3], "%C3-4f2c"),
      (Array(repeating: 0x61, count: 255), String(repeating: "a", count: 59) + "-4f2c"),
    ] {
      let draft = try Draft(
        for: try #require(UserName(name)), named: Label("phone"), .standard,
        secret: try secret(TestStore.secret), issuer: Label("web1"), ending: Array("-4f2c".utf8),
        at: UnixTime(0))
      #expect(draft.account.text == label)
    }
  }

  /// It may have been shown long before. RFC 6238, appendix B, the last six digits.
  @Test func `is confirmed by the code of the time when that is typed`() throws {
    let draft = try Draft(
      for: try #require(UserName(Array("alice".utf8))), named: Label("phone"), .standard,
      secret: try secret(TestStore.secret), issuer: Label("web1"), at: UnixTime(59))
    func verified(_ code: String) throws -> FirstCode {
      try draft.verify(
        firstCode: try secret(code), at: UnixTime(1_111_111_111), under: Policy())
    }
    guard case .right = try verified("050471") else {
      Issue.record("the code of now is not right")
      return
    }
    #expect(try verified("287082") == .wrong)
  }

  @Test func `has a name that is free`() {
    #expect(freeName(for: .totp(period: 30), beside: []).text == "phone")
    #expect(freeName(for: .hotp, beside: [Label("phone")]).text == "counter")
    #expect(
      freeName(for: .totp(period: 30), beside: [Label("phone"), Label("phone-2")]).text == "phone-3"
    )
  }
}
