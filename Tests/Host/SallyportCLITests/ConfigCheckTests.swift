import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `Checking the policy file` {
  private let bench = Bench()

  @Test(
    arguments: [
      ("", nil), ("factor_totp = off", nil),
      ("factor_totp = off\nfactor_hotp = off", "nobody can enroll at login"),
      ("factor_totp = off\nfactor_hotp = off\nfactor_backup_code = off", "nobody who is enrolled"),
    ] as [(String, String?)])
  func `tells what nobody can get past`(_ text: String, _ told: String?) throws {
    try bench.policy("[default]\n\(text)\n")
    let done = bench.run("config", "check", "--conf", bench.policyFile)
    #expect(done.status == 0)
    for words in ["nobody can enroll at login", "nobody who is enrolled"] {
      #expect(done.answer.contains(words) == (words == told))
    }
  }
}

@Suite struct `Checking a policy file` {
  private let machine: PamBench

  init() throws { machine = try PamBench() }

  @Test func `tells that the user has no account, and what was looked at`() throws {
    try machine.write("/conf", "[rule one]\nmatch_user = nosuch-person\nstate = disabled\n")
    let done = machine.check("/conf", "--user", "nosuch-person", "--store", machine.bench.directory)
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      done.answer.hasPrefix(
        "there is no account nosuch-person: what would apply if there were,\n"
          + "in no group but those that list this name\n"), "\(done.answer)")
    #expect(done.answer.contains("disabled") && done.answer.hasSuffix("\nno errors\n"))
    struct Told: Decodable { let account: Bool? }
    for (words, account) in [
      (["--user", "nosuch-person"], false), (["--user", "root"], true), ([], nil),
    ] {
      let path = "\(machine.root)/conf"
      let json = machine.bench.run(arguments: ["config", "check", path, "--json"] + words)
      #expect(try json.json(Told.self).account == account)
    }
    #expect(!machine.check("/conf", "--user", "root").answer.contains("no account"))
  }

  private func check(_ text: String, json: Bool = false) throws -> Bench.Outcome {
    try machine.write("/policy", text)
    return json ? machine.check("/policy", "--json") : machine.check("/policy")
  }

  @Test(arguments: [
    ("[defaults]\n", "unknown section, found \"defaults\". Did you mean: [default]"),
    ("[Rule x]\n", "unknown section, found \"Rule x\". Did you mean: [rule x]"),
    ("[rules x]\n", "unknown section, found \"rules x\". Did you mean: [rule x]"),
    ("[xyzzy]\n", "unknown section, found \"xyzzy\""),
  ]) func `An unknown section is compared with those that there are`(text: String, told: String)
    throws
  {
    let done = try check(text)
    #expect(done.status == 78)
    #expect(done.aside.hasPrefix("\(machine.root)/policy:1: \(told)\n"), "\(done.aside)")
  }

  // decisive
  @Test func `A rule that stands twice, and a service without a file, are warnings`() throws {
    let text = """
      [rule a]
      match_service = sudo, ssdh
      enrollment = offer
      [rule a]
      match_service = sallyport-user, nosuch
      enrollment = offer

      """
    let done = try check(text)
    #expect(done.status == 0)
    #expect(
      done.aside == """
        \(machine.root)/policy:2: warning: there is no service ssdh. Did you mean: sshd
        \(machine.root)/policy:4: warning: rule a stands in line 1 too
        \(machine.root)/policy:5: warning: there is no service nosuch

        """)
  }

  @Test func `Each wrong word of without_code is named, and the file is not installed`() throws {
    let text = """
      [default]
      without_code = git, @wheel:sudo, x:SUDO
      [rule a]
      match_user = a
      without_code = a:su

      """
    let done = try check(text)
    let (file, key) = ("\(machine.root)/policy", "without_code: expected")
    #expect(done.status == 78)
    #expect(
      done.aside == """
        \(file):2: \(key) words such as git:sshd, or "john doe:sshd" in quotes, found "git"
        \(file):2: \(key) the name of an account, no group and no pattern, found "@wheel:sudo"
        \(file):2: \(key) a PAM service in lower case after the colon, found "x:SUDO"
        \(file):5: [default] above this key is missing, found "without_code"
        sallyport: \(file) has 4 errors

        """)
    let installed = machine.bench.run(arguments: ["config", "install", file, "--conf", "\(file)2"])
    #expect(installed.status == 78 && !FileManager.default.fileExists(atPath: "\(file)2"))
  }

  @Test func `What is meant to be without a code is shown`() throws {
    let text = "[default]\nwithout_code = root:sshd\n"
    let done = try check(text)
    #expect(done.status == 0 && done.aside == "")
    #expect(done.answer.contains("\nwithout_code  root:sshd  \(machine.root)/policy:2\n"))
    #expect(try check("").answer.contains("\nwithout_code  -  built in\n"))
    #expect(
      try check("[default]\nwithout_code = root:ssdh\n").aside
        == "\(machine.root)/policy:2: warning: there is no service ssdh. Did you mean: sshd\n")
  }

  @Test func `The language before a code is shown, and a missing catalog is named`() throws {
    #expect(try check("").answer.contains("\nlanguage before a code  en  built in\n"))
    let text = "[default]\nlanguage = xx\n[rule a]\nmatch_user = root\nlanguage = en\n"
    let done = try check(text)
    #expect(done.status == 0)
    #expect(done.answer.contains("\nlanguage before a code  xx  \(machine.root)/policy:2\n"))
    #expect(done.aside.hasPrefix("\(machine.root)/policy:2: warning: language = xx: "))
    #expect(done.aside.hasSuffix(" (available: en): users read English\n"))
    let messages = "\(machine.root)/usr/share/sallyport/messages"
    try FileManager.default.createDirectory(atPath: messages, withIntermediateDirectories: true)
    for name in ["fr", "pt-BR", "README"] {
      try machine.write("/usr/share/sallyport/messages/\(name)", "")
    }
    let told = " (available: en, fr, pt-BR): users read English\n"
    for value in ["xx", "french"] {
      #expect(try check("[default]\nlanguage = \(value)\n").aside.hasSuffix(told), "\(value)")
    }
    #expect(try !check("[default]\nlanguage = fr\n").aside.contains("available"))
    for value in ["french", "fr de", "", "pt-br"] {
      let done = try check("[default]\nlanguage = \(value)\n")
      #expect(done.status == 0 && done.aside.contains("wanted a language such as fr"), "\(value)")
    }
  }

  /// In the order of the manual the first matching rule decides.
  @Test(
    arguments: [
      ("match_service = sshd", "match_service = sshd\nmatch_user = root", true),
      ("match_service = sshd, sudo", "match_service = sudo\nmatch_origin = local", true),
      ("match_origin = local", "match_origin = local", true),
      ("match_service = sshd", "match_user = root", false),
      ("match_service = sshd", "match_service = sshd, sudo", false),
      ("match_service = sshd\nmatch_user = root", "match_service = sshd", false),
      // In doubt the stricter one counts, but of a language.
      ("match_user = root", "match_user = root", nil),
      ("match_origin = 192.0.2.0/24", "match_origin = 192.0.2.0/24", nil),
    ] as [(String, String, Bool?)])
  func `A value behind one that comes first is named`(
    _ first: String, _ later: String, _ all: Bool?
  )
    throws
  {
    for (key, one, other) in [
      ("language", "en", "xx"), ("tries", "2", "3"), ("remember", "0", "1 d"),
    ] {
      func text(_ value: String) -> String {
        "[rule a]\n\(first)\n\(key) = \(one)\n[rule b]\n\(later)\n\(key) = \(value)\n"
      }
      let line = text(other).split(separator: "\n").count
      let told =
        "/policy:\(line): warning: \(key) has no effect: for these logins [rule a] in line 1 comes"
      #expect(try check(text(other)).aside.contains(told) == (all ?? (key == "language")), "\(key)")
      #expect(try !check(text(one)).aside.contains("has no effect"))
    }
    // What the budget is made of counts in each rule.
    for (key, one, other) in [("guess_budget", "1 %", "2 %"), ("adjacent_intervals", "1", "10")] {
      let text = "[rule a]\n\(first)\n\(key) = \(one)\n[rule b]\n\(later)\n\(key) = \(other)\n"
      #expect(try !check(text).aside.contains("has no effect"))
    }
  }

  @Test func `A helpdesk is shown, and each mistake of it is named`() throws {
    let lines = "helpdesk = root\nhelpdesk_for = no-such-group\n"
    let done = try check("[default]\n\(lines)helpdesk_never = root\n")
    #expect(done.status == 0)
    #expect(
      done.aside == "\(machine.root)/policy:3: warning: there is no group no-such-group\n",
      "\(done.aside)")
    #expect(done.answer.contains("\nhelpdesk  root  \(machine.root)/policy:2\n"))
    #expect(try check("[default]\nhelpdesk = root\n").aside.contains("may help nobody"))
    let wrong = try check("[default]\nhelpdesk = root\nhelpdesk_may = reset\nhelpdesk_fro = x\n")
    #expect(wrong.status == 78)
    #expect(
      wrong.aside == """
        \(machine.root)/policy:3: helpdesk_may: expected status, unlock, pass, pass-enroll and \
        block, each once or not, found "reset"
        \(machine.root)/policy:4: unknown key, found "helpdesk_fro". Did you mean: helpdesk_for
        sallyport: \(machine.root)/policy has 2 errors

        """, "\(wrong.aside)")
  }

  // decisive
  @Test func `An account that is not there is named, with the line of without_code`() throws {
    let done = try check("[default]\nwithout_code = root:sshd, no-such-git:sshd\n")
    #expect(done.status == 0)
    #expect(
      done.aside == "\(machine.root)/policy:2: warning: there is no account no-such-git\n")
  }

  // decisive
  @Test func `A user of a rule who is no account is named`() throws {
    let text = "[rule a]\nmatch_user = root, no-such-person, Root\nenrollment = refuse\n"
    let done = try check(text)
    #expect(done.status == 0)
    let start = "\(machine.root)/policy:2: warning: match_user: there is no account"
    #expect(done.aside == "\(start) no-such-person\n\(start) Root. Did you mean: root\n")
    #expect(
      try check("[rule a]\nmatch_group = Root, no-such-group\nenrollment = refuse\n").aside
        == "\(machine.root)/policy:2: warning: there is no group Root. Did you mean: root\n"
        + "\(machine.root)/policy:2: warning: there is no group no-such-group\n")
    // Of a verifier they are accounts of its hosts.
    try machine.write("/identity.key", "")
    #expect(try check(text).aside == "")
  }

  @Test func `On a verifier nothing is without a code on purpose`() throws {
    try machine.write("/identity.key", "")
    let done = try check("[default]\nlook_ahead = 1\nwithout_code = git:sshd, a:sudo\n")
    #expect(done.status == 0)
    #expect(
      done.aside
        == "\(machine.root)/policy:3: warning: without_code has no effect on a verifier\n")
  }

  @Test(arguments: [
    (
      "[rule web]\nmatch_service = sshd\nguess_budget = 0.1 %\n",
      "3: warning: guess_budget: [rule web], 0.1%, also limits wrong codes under the built-in value"
    ),
    (
      "[default]\nguess_budget = 0.5 %\n[rule web]\nmatch_origin = local\nguess_budget = 10 %\n",
      "2: warning: guess_budget: [default], 0.5%, also limits wrong codes under [rule web]"
    ),
    (
      "[rule web]\nmatch_service = sshd\nguess_budget = 10 %\n",
      "3: warning: guess_budget: the built-in value, 1%, also limits wrong codes under [rule web]"
    ),
    ("[rule web]\nmatch_user = root\nguess_budget = 0.1 %\n", ""),
    ("[rule web]\nmatch_service = sshd\nguess_budget = 0.1 %\nstate = disabled\n", ""),
    ("[rule web]\nmatch_service = sshd\nguess_budget = 1.00 %\n", ""),
  ]) func `The section that slows the others is named`(text: String, wanted: String) throws {
    let done = try check(text)
    #expect(done.status == 0)
    #expect(done.aside == (wanted == "" ? "" : "\(machine.root)/policy:\(wanted)\n"))
  }

  @Test func `Programs get the errors and the warnings`() throws {
    struct Answer: Decodable {
      struct Fault: Decodable {
        let file, text: String
        let line: Int
      }
      let errors, warnings: [Fault]
    }
    let broken = try check("[default]\nenrolment = offer\n[xyzzy]\n", json: true)
    #expect(broken.status == 78)
    let found = try broken.json(Answer.self)
    #expect(found.errors.map(\.line) == [2, 3])
    #expect(found.errors[1].text.hasPrefix("unknown section") && found.warnings.isEmpty)
    #expect(broken.aside.hasPrefix("sallyport: \(machine.root)/policy cannot be used: 2 errors"))
    let fine = try check("[rule a]\nmatch_service = nosuch\nlook_ahead = 3\n", json: true)
    let told = try fine.json(Answer.self)
    #expect(told.errors.isEmpty && told.warnings.map(\.text) == ["there is no service nosuch"])
    #expect(fine.answer.contains("\"look_ahead\"") && fine.aside == "")
  }
}
