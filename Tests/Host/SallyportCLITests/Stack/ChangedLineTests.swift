import Foundation
import SallyportCore
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// A line that `pam enable` wrote and somebody else has changed.
@Suite struct `A recorded line` {
  private let machine: PamBench

  init() throws {
    machine = try PamBench()
    let done = machine.run(words: ["enable", "sudo", "--demand", "--yes"])
    try #require(done.status == 0, "\(done.aside)")
  }

  private func check() -> Bench.Outcome { machine.run("status", "--check", "--settle", "0") }

  private func edit(_ phase: String, _ old: String, _ new: String) throws {
    let text = try #require(machine.read("/etc/pam.d/sudo"))
    let lines = text.components(separatedBy: "\n").map { line in
      line.hasPrefix(phase) && line.contains("pam_sallyport.so")
        ? line.replacing(old, with: new) : line
    }
    let edited = lines.joined(separator: "\n")
    try #require(edited != text)
    try machine.write("/etc/pam.d/sudo", edited)
  }

  // decisive
  @Test(arguments: [
    ("auth", "so enroll", "so enroll nullok", "has nullok"),
    ("auth", "so enroll", "so enroll conf=/tmp/x", "has conf=/tmp/x"),
    ("auth", "store=", "store=/tmp", "has store=/tmp"),
    ("auth", "required  ", "optional", "is optional and not required"),
    ("auth", "required  ", "[success=1 default=bad]", "is [success=1 default=bad] and not"),
    ("auth", "pam_sallyport.so", "/tmp/pam_sallyport.so", "names /tmp/pam_sallyport.so"),
    ("account", "required  ", "sufficient", "is sufficient and not required"),
    ("account", "so demand", "so", "lacks demand"),
    ("account", "so demand", "so [demand", "lacks demand"),
  ])
  func `that lets in more people is a loss`(
    phase: String, old: String, new: String, told: String
  ) throws {
    #expect(check().status == 0)
    try edit(phase, old, new)
    #expect(check().status == 1)
    let text = try #require(machine.logged.first)
    #expect(text.contains("1 sudo no longer asks as it was turned on: /etc/pam.d/sudo:"))
    #expect(text.contains(told), "\(text)")
    #expect(machine.doctor().answer.contains("service-lost"))
  }

  @Test(arguments: [
    ("auth", "so enroll", "so"), ("auth", "required  ", "requisite "),
    ("auth", "so enroll", "so   enroll debug nodelay echo prompt=Code"),
    ("auth", "so enroll", "so enroll after-key"), ("auth", "so enroll", "so [enroll]"),
    ("auth", "required  ", "[success=ok new_authtok_reqd=ok ignore=ignore default=bad]"),
    ("account", "required  ", "required\t"),
  ])
  func `that only lets in fewer people is no loss`(phase: String, old: String, new: String) throws {
    try edit(phase, old, new)
    #expect(check().status == 0, "\(machine.logged)")
  }

  @Test func `is lost too if another line beside it lets in more people`() throws {
    let text = try #require(machine.read("/etc/pam.d/sudo"))
    try machine.write("/etc/pam.d/sudo", "account sufficient pam_sallyport.so\n" + text)
    #expect(check().status == 1)
  }

  // decisive
  @Test func `that was changed on purpose is accepted by a question, and by that alone`() throws {
    try edit("auth", "so enroll", "so enroll nullok")
    let role = machine.run("enable", "sudo", "--yes")
    #expect(role.status != 0 && check().status == 1)
    let no = machine.run("enable", "sudo", answers: "n")
    #expect(no.status != 0 && check().status == 1)
    #expect(no.answer.contains("has nullok, unlike what was recorded"), "\(no.answer)")
    let yes = machine.run("enable", "sudo", answers: "y")
    #expect(yes.status == 0 && check().status == 0, "\(yes.aside)")
  }

  @Test func `is recorded again where its words are typed`() throws {
    try edit("auth", "so enroll", "so enroll nullok")
    #expect(check().status == 1)
    #expect(machine.run("enable", "sudo", "--demand", "--nullok", "--yes").status == 0)
    #expect(check().status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(check().status == 0)
  }

  @Test func `has all its words in the record, whatever is in them`() {
    let line = "auth [success=2 default=die] /x/pam_sallyport.so [store=/a b\\]c] enroll"
    let file = Array("\(line)\n".utf8)
    let stack = StackParser.parse(
      service: "x", .debian(.before16) { $0 == "/etc/pam.d/x" ? file : nil })
    #expect(stack[.auth].map(\.written) == [line])
    #expect(stack.changes(since: [line]) == [])
    #expect(stack.changes(since: ["auth required pam_sallyport.so"]) != [])
  }

  /// Whether a line of another file lets others in is not what this record says.
  // decisive
  @Test func `is not compared with a line of an included file`() throws {
    let common = try #require(machine.read("/etc/pam.d/common-session"))
    try machine.write(
      "/etc/pam.d/common-session", "session optional pam_sallyport.so\n" + common)
    try #require(machine.run("enable", "su", "--yes").status == 0)
    #expect(check().status == 0, "\(machine.logged)")
  }

  private func forgetControls() throws {
    let text = try #require(machine.read(path))
    let old = text.replacing(" required pam", with: " pam")
    try #require(old != text)
    try machine.write(path, old)
  }

  /// As the version before wrote it.
  // decisive
  @Test func `without a control is recorded with it by the check`() throws {
    let text = try #require(machine.read(path))
    try forgetControls()
    #expect(check().status == 0)
    #expect(machine.read(path) == text)
    try edit("account", "required  ", "optional  ")
    #expect(check().status == 1)
  }

  // decisive
  @Test(arguments: [
    ("auth", "so enroll", "so enroll nullok"), ("account", "so demand", "so"),
    ("auth", "pam_sallyport.so", "/tmp/pam_sallyport.so"),
  ])
  func `without a control is compared by its words`(
    phase: String, old: String, new: String
  ) throws {
    try forgetControls()
    let text = machine.read(path)
    try edit(phase, old, new)
    #expect(check().status == 1 && check().status == 1)
    #expect(machine.read(path) == text)
  }

  private let path = ServiceRecord.path(of: "sudo")

  // decisive
  @Test func `is accepted only with all that was changed beside it`() throws {
    try edit("auth", "so enroll", "so enroll nullok")
    try edit("account", "required  ", "optional  ")
    try edit("auth", "auth ", "auth sufficient pam_permit.so\nauth ")
    let text = machine.read(path)
    let no = machine.run("enable", "sudo", answers: "n")
    for part in ["has nullok", "is optional and not required", "no longer decides all logins"] {
      #expect(no.answer.contains(part), "\(no.answer)")
    }
    #expect(machine.read(path) == text)
    let yes = machine.run("enable", "sudo", answers: "y")
    #expect(yes.status == 0 && !yes.answer.contains("already asks"), "\(yes.answer)")
    #expect(check().status == 0)
  }

  // decisive
  @Test func `is not recorded if it is changed once more before the answer`() throws {
    try edit("auth", "so enroll", "so enroll nullok")
    let text = machine.read(path)
    let changed = try #require(machine.read("/etc/pam.d/sudo"))
    let more = changed.replacing("so enroll nullok", with: "so enroll nullok conf=/tmp/x")
    let done = machine.run(
      words: ["enable", "sudo"], writing: more, to: "/etc/pam.d/sudo", answers: "y")
    #expect(done.status != 0 && machine.read(path) == text, "\(done.aside)")
    #expect(check().status == 1)
  }

  // decisive
  @Test func `is ended by the commands of the alert without a terminal`() throws {
    try edit("auth", "so enroll", "so enroll nullok")
    let told = check().aside
    #expect(
      told.contains(
        "hint: sallyport pam disable sudo --yes && sallyport pam enable sudo --yes  # writes"),
      "\(told)")
    #expect(told.contains("hint: sallyport pam enable sudo  # on a terminal,"), "\(told)")
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(check().status == 0)
  }

  /// The version before passed over such words, and let in by a stricter policy.
  // decisive
  @Test(arguments: [
    ("so demand", "so store=tmp/x", "store=tmp/x", "store=/PATH"),
    ("so demand", "so conf=x", "conf=x", "conf=/PATH"),
    ("so demand", "so deman", "deman", "demand"),
    ("so demand", "so after key", "after-key", "after-key"),
  ])
  func `that refuses everybody is told of by an upgrade and by doctor`(
    old: String, new: String, word: String, meant: String
  ) throws {
    #expect(machine.prepare().aside == "")
    try edit("account", old, new)
    let told = machine.prepare()
    #expect(told.status == 0)
    #expect(
      told.aside.contains("refuses everybody by the argument \"\(word)\": write \(meant)"),
      "\(told.aside)")
    #expect(told.aside.contains("/etc/pam.d/sudo:"))
    let found = machine.doctor().answer
    #expect(found.contains("this line refuses everybody"), "\(found)")
  }
}
