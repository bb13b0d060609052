import Foundation
import Testing

@Suite struct `Unenrolling who is not found` {
  private let bench = Bench()

  @Test func `Unenrolling who is not found needs the uid of the enrollment, whatever is forced`()
    throws
  {
    _ = try bench.enroll()
    let file = URL(fileURLWithPath: "\(bench.directory)/users/alice/enrollment")
    let text = try String(contentsOf: file, encoding: .utf8)
    try Data(text.replacing("uid = none", with: "uid = 4711").utf8).write(to: file)
    let before = try bench.content()
    let told = bench.run("status", "alice", "--allow-missing")
    #expect(told.status == 65 && told.aside.contains("hint: getent passwd alice"), "\(told.aside)")
    #expect(!told.aside.contains("enroll alice"))
    let force = ["unenroll", "alice", "--force"]
    for more in [
      [], ["--allow-missing"], ["--allow-missing", "--uid", "4712"], ["--uid", "0"],
    ] {
      let done = bench.run(arguments: force + more)
      #expect(done.status == 67, "\(done.aside)")
      #expect(done.aside.contains("hint: getent passwd alice"), "\(done.aside)")
      #expect(try bench.content() == before, "\(more)")
    }
    #expect(bench.run(arguments: force + ["--uid", "many"]).status == 64)
    #expect(bench.run(arguments: force + ["--allow-missing", "--uid", "4711"]).status == 0)
    #expect(!(try bench.content().keys.contains { $0.contains("alice") }))
  }

  @Test func `A uid that is typed is compared of somebody who is found as well`() throws {
    let user = "daemon"
    _ = try bench.enroll(user)
    #expect(bench.run("unenroll", user, "--force", "--uid", "4711").status == 67)
    #expect(bench.run("status", user).status == 0)
    #expect(bench.run("unenroll", user, "--force", "--uid", "1").status == 0)
  }

  @Test func `A broken enrollment of somebody who is not found is not removed`() throws {
    _ = try bench.enroll()
    let file = URL(fileURLWithPath: "\(bench.directory)/users/alice/enrollment")
    try Data("version = 1\n".utf8).write(to: file)
    for more in [[], ["--allow-missing"], ["--uid", "4711"]] {
      let done = bench.run(arguments: ["unenroll", "alice", "--force"] + more)
      #expect(done.status == 67 && done.aside.contains("cannot be read"), "\(done.aside)")
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
  }
}
