import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `Whose logins a policy file leaves to the fleet` {
  /// Whether the fleet verifies the login of a user of that uid.
  private func isFleet(_ text: String, _ user: String, uid: UInt32 = 1000, _ staff: Tristate = .no)
    throws -> Bool
  {
    let login = PolicyRequest(
      service: Array("sshd".utf8), user: Array(user.utf8), isSuperuser: uid == 0, isRemote: true,
      address: nil, parse: Addresses.numeric, membership: { _ in staff })
    let file = PolicyFile(try #require(Secret(text.utf8)), base: Policy(), login)
    #expect(file.problem == nil)
    return file.policy(Policy()).isFleet
  }

  @Test(arguments: [
    ("[default]\nverification = fleet", false),
    ("[rule a]\nmatch_service = sshd\nverification = fleet", false),
    ("[rule a]\nmatch_group = staff\nverification = fleet", false),
    ("[rule a]\nverification = fleet\nmatch_user = toor, root", true),
    (
      "[rule a]\nmatch_service = sshd\nverification = fleet\n"
        + "[rule b]\nmatch_user = root\nverification = fleet", true
    ),
    (
      "[rule a]\nmatch_service = sshd\nverification = local\n"
        + "[rule b]\nmatch_user = root\nverification = fleet", false
    ),
  ]) func `The fleet verifies uid 0 only where a rule names the user`(_ text: String, _ yes: Bool)
    throws
  {
    #expect(try isFleet(text, "root", uid: 0, .yes) == yes)
    #expect(try isFleet(text, "root", uid: 1000, .yes) == !text.contains("= local"))
  }

  @Test func `In doubt the fleet verifies codes, except of users whom a rule names`() throws {
    let text = """
      [default]
      verification = fleet
      [rule break-glass]
      match_user = admin
      verification = local
      [rule staff]
      match_group = staff
      verification = local
      """
    #expect(try !isFleet(text, "admin", .unknown))
    #expect(try isFleet(text, "alice", .unknown))
    #expect(try !isFleet(text, "alice", .yes))
    let other = "[rule staff]\nmatch_group = staff\nverification = fleet"
    #expect(try isFleet(other, "alice", .unknown) && !isFleet(other, "alice", .no))
  }
}
