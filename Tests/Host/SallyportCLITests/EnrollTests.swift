import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import Testing

@testable import SallyportCLI

@Suite struct `Enrolling` {
  private let bench = Bench()
  private let screen = Screen(columns: 80, lines: 24, isUTF8: true)

  @Test func `A right code enrolls, and backup codes are shown`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)], screen: screen)
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(terminal.prompts == ["Code shown by the app: "])
    #expect(done.answer.contains("Second factor for alice on web1.example.org\n"))
    #expect(done.answer.contains("Enrolled as \"phone\" (TOTP, 6 digits, every 30 s).\n"))
    #expect(done.answer.contains("\u{2580}"), "no QR code")
    #expect(backupCodes(in: done.answer).count == 10)
    #expect(done.aside == "")
  }

  // shows: hostile-uri
  @Test func `The printed URI carries every parameter`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)])
    bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    let uri = try terminal.uri()
    #expect(uri.hasPrefix("otpauth://totp/web1.example.org:alice?secret="))
    #expect(uri.hasSuffix("&issuer=web1.example.org&algorithm=SHA1&digits=6&period=30"))
  }

  @Test(arguments: [(-1, "one step behind"), (5, "5 steps ahead"), (-5, "5 steps behind")])
  func `A code of a neighbouring step enrolls and tells how far the clock is off`(
    steps: Int, told: String
  ) throws {
    let terminal = FakeTerminal([shownCode(at: bench.now, steps: steps)])
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 0)
    #expect(done.answer.contains("every 30 s; its clock is \(told))."))
  }

  @Test(arguments: [-6, 6]) func `A code beyond the accepted steps does not enroll`(steps: Int)
    throws
  {
    let terminal = FakeTerminal([shownCode(at: bench.now, steps: steps), .ends])
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 1)
    #expect(done.answer.contains("The phone's clock is 3 min \(steps < 0 ? "behind" : "ahead")."))
  }

  @Test(arguments: ["sheet", "sheet.pdf", "sheet.svg.gz", "sheet.txt/", "svg"])
  func `A sheet is a page or text by its name, and nothing else`(_ name: String) throws {
    let done = bench.run(
      "enroll", "alice", "--allow-missing", "--no-confirm", "--handout", "\(bench.root)/\(name)")
    #expect(done.status == 64)
    #expect(done.aside.contains("--handout takes a file that ends in .svg"), "\(done.aside)")
    #expect(try bench.content().isEmpty)
  }

  @Test func `The next step is to turn a service on, or to try it`() throws {
    func next(_ more: String...) -> String {
      let script = more.isEmpty ? [shownCode(at: bench.now)] : []
      let arguments = ["enroll", "alice", "--allow-missing", "--force"] + more
      let isThere = bench.run("status", "alice", "--allow-missing").status == 0
      let question = isThere && more.isEmpty ? [Act.types("y")] : []
      let done = bench.run(arguments: arguments, on: FakeTerminal(question + script))
      #expect(done.status == 0, "\(done.aside)")
      let lines = done.answer.split(separator: "\n").map(String.init)
      let isTold = lines.last?.contains("wait for the next one before you log in") == true
      #expect(isTold == more.isEmpty)
      return lines.last { $0.hasPrefix("Next") } ?? ""
    }
    #expect(next() == "Next: sudo sallyport pam enable sshd")
    let services = "\(bench.root)/etc/pam.d"
    try FileManager.default.createDirectory(atPath: services, withIntermediateDirectories: true)
    try Data("auth required pam_unix.so\nauth required pam_sallyport.so\n".utf8)
      .write(to: URL(filePath: "\(services)/sshd"))
    #expect(next() == "Next: keep this shell open and log in from another terminal.")
    #expect(!next("--no-confirm").hasPrefix("Next"))
  }

  @Test func `The confirming code counts as used, the next one does not`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)])
    bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    let uri = try terminal.uri()
    for (steps, status) in [(0, 1), (1, 0)] {
      let typed = try uriCode(uri, at: bench.now, steps: steps)
      let check = bench.run("verify", "--user", "alice", on: FakeTerminal([.types(typed)]))
      #expect(check.status == Int32(status))
    }
  }

  @Test func `An HOTP is confirmed by counter 0, which is used then`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)])
    let done = bench.run(
      "enroll", "--user", "alice", "--allow-missing", "--type", "hotp", "--digits", "8", "--json",
      on: terminal)
    let enrolled = try done.json(Enrolled.self)
    #expect(enrolled.authenticator.counter == 1)
    #expect(enrolled.authenticator.period == nil)
    for (counter, status) in [(0, 1), (1, 0), (3, 0), (2, 1)] {
      let typed = try enrolled.code(at: bench.now, steps: counter)
      let check = bench.run("verify", "--user", "alice", on: FakeTerminal([.types(typed)]))
      #expect(check.status == Int32(status), "counter \(counter)")
    }
  }

  // shows: enroll-cut
  @Test func `Five wrong codes end it, count down, and change nothing`() throws {
    let wrong = wrongCode(at: bench.now)
    let terminal = FakeTerminal([wrong, .types("12"), .types(""), wrong, wrong, wrong])
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 1)
    #expect(done.answer.contains("Is the phone's clock set automatically? 4 tries left.\n"))
    #expect(done.answer.contains("A code has 6 digits. 3 tries left.\n"))
    #expect(done.answer.contains("1 try left.\n"))
    #expect(done.aside.hasSuffix("hint: date  # compare it with the clock of the phone\n"))
    #expect(done.aside.hasPrefix("sallyport: no correct code: not enrolled, nothing"))
    #expect(try bench.content().isEmpty)
    let right = try uriCode(try terminal.uri(), at: bench.now)
    #expect(!done.answer.contains(right), "the right code was printed")
  }

  @Test func `An empty line and i cost no try, and i draws the code again, inverted`() throws {
    let free = Array(repeating: Act.types(""), count: 8) + [.types("i"), .types("I")]
    let terminal = FakeTerminal(free + [shownCode(at: bench.now)], screen: screen)
    let done = bench.run("enroll", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(!done.answer.contains("left.\n"))
    #expect(done.answer.components(separatedBy: "\u{2580}\u{2580}\u{2580}\u{2580}").count > 3)
    let drawn = bench.run(
      "enroll", "bob", "--allow-missing", "--qr", "none",
      on: FakeTerminal([
        .types("i"), shownCode(at: bench.now),
      ]))
    #expect(!drawn.answer.contains("\u{2580}"), "not on a terminal")
  }

  @Test func `An app that ignores what the code says is told, and its code not accepted`() throws {
    let arguments = [
      "enroll", "alice", "--allow-missing", "--algorithm", "sha256", "--digits", "8", "--period",
      "60",
    ]
    let usualCode = Act.answers { [now = bench.now] terminal in
      let uri = try terminal.uri().split(separator: "&").first.map(String.init) ?? ""
      return try uriCode(uri, at: now)
    }
    let terminal = FakeTerminal([usualCode, shownCode(at: bench.now)])
    let done = bench.run(arguments: arguments, on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      done.answer.contains("A code has 8 digits. 4 tries left.\nThis app ignores what the"))
    #expect(done.answer.contains("leave out --algorithm, --digits and --period."))
    let usual = bench.run(
      "enroll", "bob", "--allow-missing",
      on: FakeTerminal([.types("000000"), shownCode(at: bench.now)]))
    #expect(!usual.answer.contains("This app"))
  }

  @Test func `A user who only presses Enter is not asked for ever`() throws {
    let terminal = FakeTerminal(Array(repeating: .types(""), count: 20))
    let done = bench.run("enroll", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 1)
    #expect(done.aside.hasPrefix("sallyport: no correct code: not enrolled, nothing"))
  }

  @Test func `Why there is no QR code is told where there is no terminal`() throws {
    let piped = bench.run(
      "enroll", "alice", "--allow-missing", on: FakeTerminal([shownCode(at: bench.now)]))
    #expect(
      piped.answer.contains("No QR code: this is no terminal. With --qr utf8 it is drawn anyway.\n")
    )
    let none = bench.run(
      "enroll", "alice", "--allow-missing", "--force", "--no-confirm", "--qr", "none")
    #expect(none.status == 0 && !none.answer.contains("QR code"))
  }

  @Test func `An authenticator that is named as an account is, is asked about`() throws {
    let asked = FakeTerminal([.types("n")])
    let no = bench.run("enroll", "alice", "root", "--allow-missing", on: asked)
    #expect(no.status == 1)
    #expect(try bench.content().isEmpty)
    #expect(
      asked.prompts == [
        "root is an account, and would be the name of an authenticator of alice. Go on? [y/N]: "
      ])
    let piped = bench.run(
      "enroll", "alice", "root", "--allow-missing",
      on: FakeTerminal([shownCode(at: bench.now)], isInteractive: false))
    #expect(piped.status == 0)
    #expect(piped.aside.contains("warning: root is an account, and is not enrolled by this"))
    let named = bench.run(
      "enroll", "bob", "--name", "root", "--allow-missing",
      on: FakeTerminal([shownCode(at: bench.now)]))
    #expect(named.status == 0 && named.aside == "")
  }

  @Test(arguments: [
    (Act.ends, Int32(1)), (.signals(2), 130), (.signals(15), 143), (.signals(1), 129),
  ])
  func `Leaving at the prompt changes nothing`(act: Act, status: Int32) throws {
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: FakeTerminal([act]))
    #expect(done.status == status)
    #expect(done.aside == "sallyport: not enrolled, nothing was changed\n")
    #expect(try bench.content().isEmpty)
  }

  // shows: enroll-cut
  @Test func `A signal after the right code still changes nothing`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)])
    terminal.lateSignal = 2
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 130)
    #expect(try bench.content().isEmpty)
  }

  @Test func `A user who is already enrolled is told what to do`() throws {
    _ = try bench.enroll()
    let before = try bench.content()
    let done = bench.run("enroll", "--user", "alice", "--allow-missing")
    #expect(done.status == 73)
    #expect(done.aside.hasPrefix("sallyport: alice is already enrolled (1 authenticator)\nhint: "))
    #expect(
      done.aside.contains(
        "enroll --user alice --allow-missing --store \(bench.directory) --force  # replaces"))
    #expect(try bench.content() == before)
  }

  @Test func `Replacing is asked for, and no means no`() throws {
    let first = try bench.enroll()
    let before = try bench.content()
    for answer in ["n", "", "maybe", "yess"] {
      let done = bench.run(
        "enroll", "--user", "alice", "--allow-missing", "--force",
        on: FakeTerminal([.types(answer)]))
      #expect(done.status == 1)
      #expect(done.aside == "sallyport: not enrolled, nothing was changed\n")
    }
    #expect(try bench.content() == before)
    let terminal = FakeTerminal([.types("yes"), shownCode(at: bench.now)])
    #expect(
      bench.run("enroll", "--user", "alice", "--allow-missing", "--force", on: terminal).status == 0
    )
    #expect(terminal.prompts.first == "Replace the enrollment of alice (1 authenticator)? [y/N]: ")
    let old = bench.run(
      "verify", "--user", "alice", on: FakeTerminal([.types(first.backupCodes[0])]))
    #expect(old.status == 1, "an old backup code still works")
  }

  @Test func `Whom somebody else enrolled meanwhile keeps that, and the code above is void`() throws
  {
    _ = try bench.enroll()
    let now = bench.now
    let (name, aside) = ("\(bench.directory)/users/alice", "\(bench.directory)/aside")
    try FileManager.default.moveItem(atPath: name, toPath: aside)
    let terminal = FakeTerminal([
      .answers { terminal in
        try FileManager.default.moveItem(atPath: aside, toPath: name)
        return try uriCode(try terminal.uri(), at: now, steps: 0)
      }
    ])
    let done = bench.run("enroll", "alice", "--allow-missing", on: terminal)
    #expect(done.status == 73)
    #expect(
      done.aside.hasPrefix(
        "sallyport: alice was enrolled by somebody else meanwhile; the QR code above is void\n"))
    #expect(done.aside.contains("hint: sallyport status alice --store"))
    #expect(!done.answer.contains("Backup codes"))
  }

  @Test func `Scripts replace without a question`() throws {
    let first = try bench.enroll()
    let second = try bench.enroll("alice", "--force")
    #expect(first.secret != second.secret)
  }

  /// The account in a URI, as an app shows it.
  private func label(_ uri: String) throws -> String {
    let path = try #require(URLComponents(string: uri)).path
    return String(try #require(path.split(separator: ":").last))
  }

  @Test func `Where an old phone may show an entry too, the new one has its day in the label`()
    throws
  {
    let form = DateFormatter()
    form.dateFormat = "yyyy-MM-dd HH.mm"
    let date = { form.string(from: Date(timeIntervalSince1970: Double(self.bench.now.seconds))) }
    #expect(try label(bench.enroll().uri) == "alice")
    // Made on one day: the day alone would be the same twice.
    #expect(try label(bench.enroll("alice", "--force").uri) == "alice \(date())")
    bench.now = UnixTime(bench.now.seconds + 86400)
    #expect(try label(bench.enroll("alice", "--force").uri) == "alice \(date().prefix(10))")
    #expect(try label(bench.add("tablet")) == "alice \(date())")
    #expect(try label(bench.enroll("alice", "--force", "--account", "me").uri) == "me")
    let long = String(repeating: "n", count: 60)
    #expect(try label(bench.enroll(long).uri) == long)
    #expect(try label(bench.enroll(long, "--force").uri).hasSuffix("n \(date())"))
  }

  @Test func `A broken enrollment's place is taken under a label with the day`() throws {
    _ = try bench.enroll()
    try Data().write(to: URL(fileURLWithPath: "\(bench.directory)/users/alice/enrollment"))
    let day = try #require(CalendarDate(bench.now)).isoDay
    #expect(try label(bench.enroll("alice", "--force").uri) == "alice \(day)")
  }

  @Test func `The JSON object has the promised shape`() throws {
    let secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    let enrolled = try bench.enroll(
      "alice", "--name", "tablet", "--algorithm", "sha256", "--digits", "8", "--period", "60",
      "--backup-codes", "3", secret: "jbsw y3dp-ehpk3pxp\njbswy3dpehpk3pxp\n")
    #expect(enrolled.user == "alice")
    #expect(
      enrolled.authenticator
        == Enrolled.Authenticator(
          name: "tablet", type: "totp", algorithm: "sha256", digits: 8, period: 60, counter: nil))
    #expect(enrolled.secret == secret)
    #expect(
      enrolled.uri == "otpauth://totp/web1.example.org:alice?secret=\(secret)"
        + "&issuer=web1.example.org&algorithm=SHA256&digits=8&period=60")
    #expect(enrolled.backupCodes.count == 3)
    #expect(Set(enrolled.backupCodes).count == 3)
    #expect(
      enrolled.backupCodes.allSatisfy { $0.wholeMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/) != nil })
  }

  @Test func `With --json and a question only the object is on standard output`() throws {
    let terminal = FakeTerminal([shownCode(at: bench.now)])
    let done = bench.run("enroll", "--user", "alice", "--allow-missing", "--json", on: terminal)
    #expect(try done.json(Enrolled.self).user == "alice")
    #expect(done.answer.hasPrefix("{\n"))
    #expect(done.aside.contains("Key to type by hand: "))
  }

  @Test(arguments: [
    (["sha1"], 32), (["sha256"], 52), (["sha512"], 103),
  ]) func `A fresh secret is as long as its hash`(algorithm: [String], letters: Int) throws {
    #expect(try bench.enroll("alice", "--algorithm", algorithm[0]).secret.count == letters)
  }

  @Test(arguments: ["no-such-user-here", ".hidden", "a/b", "-x y"])
  func `A user without an account is refused`(name: String) {
    let done = bench.run("enroll", "--user=\(name)", "--no-confirm")
    #expect(done.status == 67)
    #expect(done.aside.contains("hint: getent passwd"))
  }

  @Test func `An account is enrolled with its uid`() throws {
    let done = bench.run("enroll", "--user", "root", "--no-confirm")
    #expect(done.status == 0, "\(done.aside)")
    let text = try bench.content().first { $0.key.hasSuffix("root/enrollment") }?.value
    #expect(String(decoding: try #require(text), as: UTF8.self).contains("\nuid = 0\n"))
  }

  @Test func `If the secret cannot be shown nothing is enrolled`() throws {
    let terminal = FakeTerminal()
    terminal.breaksAt = ("otpauth", 28)
    let done = bench.run(
      "enroll", "--user", "alice", "--allow-missing", "--no-confirm", on: terminal)
    #expect(done.status == 74)
    #expect(try bench.content().isEmpty)
  }

  @Test func `If the backup codes cannot be shown that is said`() throws {
    let terminal = FakeTerminal()
    terminal.breaksAt = ("Backup codes", 28)
    let done = bench.run(
      "enroll", "--user", "alice", "--allow-missing", "--no-confirm", on: terminal)
    #expect(done.status == 74)
    #expect(done.aside.contains("hint: sallyport backup-codes alice --store"))
    #expect(done.aside.contains(" --regenerate\n"))
  }

  private func backupCodes(in text: String) -> Set<String> {
    Set(text.matches(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/).map { String($0.output.0) })
  }
}
