import OneTimePassword
import SallyportAdministration
import SallyportCore
import Testing

@Suite struct `What a policy file says of a helpdesk` {
  private func read(_ text: String) throws -> HelpdeskSettings {
    HelpdeskSettings(try #require(Secret(text.utf8)))
  }

  private func words(_ line: HelpdeskSettings.Line?) -> [String]? {
    line?.words.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func `is nothing where it says nothing`() throws {
    for text in ["", "[default]\nself_service = yes\n", "helpdesk", "\u{0}\n[x"] {
      let found = try read(text)
      #expect(found == HelpdeskSettings() && found.group == nil && found.helped == nil)
    }
  }

  @Test func `is read from the defaults`() throws {
    let found = try read(
      """
      [default]
      helpdesk = helpers
      helpdesk_may = unlock, pass
      helpdesk_for = staff "Domain Users"
      helpdesk_never = board
      [rule a]
      match_user = a
      state = disabled
      """)
    #expect(found.problems == [])
    #expect(words(found.group) == ["helpers"] && words(found.helped) == ["staff", "Domain Users"])
    #expect(words(found.never) == ["board"] && found.may == [.unlock, .pass])
    #expect([found.group, found.helped, found.never].compactMap { $0?.number } == [2, 4, 5])
    #expect(try read("[default]\nhelpdesk = x\n").may == [.status, .unlock, .pass])
    let line = "helpdesk_may = block, pass-enroll\n"
    #expect(try read("[default]\nhelpdesk = x\n\(line)").may == [.passEnroll, .block])
  }

  @Test(arguments: [
    ("helpdesk = a b", 2), ("helpdesk = ", 2), ("helpdesk_for = a", 2),
    ("helpdesk = a\nhelpdesk_may = blocks", 3), ("helpdesk = a\nhelpdesk_may = pass_enroll", 3),
    ("helpdesk = a\nhelpdesk_may = status, all", 3), ("helpdesk = a\nhelpdesk_may =", 3),
    ("helpdesk = a\nhelpdesk_nevr = b", 3), ("helpdesk = a\nhelpdesk = b", 3),
    ("helpdesk = a\nhelpdesk_for = \"b", 3), ("helpdesk = a\nhelpdesk_never = \"\"", 3),
    ("helpdesk = a\n[rule b]\nmatch_user = c\nhelpdesk_for = d", 5), ("helpdesks = a", 2),
  ]) func `has mistakes that are named with their line`(_ text: String, line: Int) throws {
    #expect(try read("[default]\n\(text)\n").problems.map(\.line) == [line])
  }
}
