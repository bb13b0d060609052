import SallyportCore
import Testing

@testable import SallyportCLI

/// What somebody types who is not root, for somebody else.
@Suite struct `A line of a helper` {
  static let helpers: [(line: String, status: Int32, said: String)] = [
    ("pass root", 77, "only root and helpers can run sallyport pass for others, and the service"),
    ("unlock root", 77, "the service for helpers does not run: ask an administrator"),
    ("status root", 77, "hint: sudo systemctl enable --now sallyport-session.socket"),
    ("pass root --for 1d", 77, "only root can use --for here: ask an administrator"),
    ("pass root --for 1d", 77, "hint: sallyport pass root  # what helpers may type"),
    ("pass root --revoke", 77, "only root can use --revoke here"),
    ("pass root --enroll --force", 77, "hint: sallyport pass root --enroll  # what helpers"),
    ("block root --force", 77, "only root can use --force here"),
    ("pass daemon", 77, "you cannot help yourself: ask an administrator"),
    ("pass no-such-user", 67, "there is no user no-such-user"),
    ("pass", 64, "no user given\nhint: sallyport pass NAME\n"),
  ]

  @Test(arguments: helpers)
  func `is answered with what anybody may know`(
    line: String, status: Int32, said: String
  ) {
    let terminal = FakeTerminal()
    var context = Context(
      terminal: terminal, effectiveUser: 1, caller: nil, hostName: nil, now: { UnixTime(0) })
    context.sessions = "/no/such/socket"
    #expect(Command.run(line.split(separator: " ").map(String.init), in: context) == status)
    #expect(terminal.aside.contains(said), "\(terminal.aside)")
  }
}
