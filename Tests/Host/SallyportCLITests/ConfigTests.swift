import Foundation
import SallyportSupport
import Testing

@testable import SallyportCLI

@Suite struct `Editing the policy file` {
  private let bench = Bench()
  private let good = "[default]\nlook_ahead = 7\n"
  private let bad = "[default]\nlook_ahead = 700\n"

  /// Each call of the editor leaves the next text; nil: it leaves the file as it is.
  private func editor(_ texts: String?..., status: EditorStatus = .done) {
    var texts = texts
    bench.editing = { path in
      let mode = try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
      #expect(mode as? Int == 0o600)
      #expect(path.hasPrefix(self.bench.policyFile))
      guard !texts.isEmpty else {
        Issue.record("edited once more than expected")
        return .failed(9)
      }
      if let text = texts.removeFirst() { try? Data(text.utf8).write(to: URL(filePath: path)) }
      return status
    }
  }

  private func edit(_ script: Act...) -> Bench.Outcome {
    bench.run("config", "edit", "--conf", bench.policyFile, on: FakeTerminal(script))
  }

  private func content() throws -> String {
    try String(contentsOfFile: bench.policyFile, encoding: .utf8)
  }

  /// What stands beside the policy file under a name that begins with its own.
  private func leftovers() throws -> [String] {
    let file = URL(filePath: bench.policyFile)
    return try FileManager.default
      .contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
      .filter { $0.hasPrefix(file.lastPathComponent) && $0 != file.lastPathComponent }
  }

  @Test func `A good one takes its place, with its mode, and nothing is left over`() throws {
    try bench.policy("[default]\n")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o640], ofItemAtPath: bench.policyFile)
    editor(good)
    let done = edit()
    #expect(done.answer == "Installed as \(bench.policyFile).\n")
    #expect(try content() == good)
    let facts = try FileManager.default.attributesOfItem(atPath: bench.policyFile)
    #expect(facts[.posixPermissions] as? Int == 0o640)
    #expect(try leftovers() == [])
  }

  @Test func `Nobody else may write to what is installed`() throws {
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o666], ofItemAtPath: bench.policyFile)
    editor(good)
    #expect(edit().status == 0)
    let facts = try FileManager.default.attributesOfItem(atPath: bench.policyFile)
    #expect(facts[.posixPermissions] as? Int == 0o644)
  }

  @Test func `Errors are named by the file's own name, and it can be edited again`() throws {
    editor(bad, good)
    let done = edit(.types("x"), .types("e"))
    #expect(done.status == 0)
    #expect(
      done.aside == """
        \(bench.policyFile):2: look_ahead: expected a whole number from 0 to 100, found "700"

        """)
    #expect(
      done.terminal.prompts.last == "1 error. Edit again, or drop the changes? [e/d]: ")
    #expect(try content() == good)
    #expect(try leftovers() == [])
  }

  @Test func `Errors that are dropped change nothing`() throws {
    try bench.policy(good)
    editor(bad)
    let done = edit(.types("d"))
    #expect(done.status == 1)
    #expect(done.aside.hasSuffix("sallyport: nothing was changed\n"))
    #expect(try content() == good)
    #expect(try leftovers() == [])
  }

  @Test(arguments: [Act.ends, .signals(2)])
  func `What nobody drops is kept in a file that is named`(_ act: Act) throws {
    try bench.policy(good)
    editor(bad)
    let done = edit(act)
    #expect(done.status == 1 || done.status == 130)
    #expect(try content() == good)
    let left = try leftovers()
    #expect(left.count == 1)
    let path = URL(filePath: bench.policyFile).deletingLastPathComponent().path + "/\(left[0])"
    #expect(try String(contentsOfFile: path, encoding: .utf8) == bad)
    let hint = "sallyport config check \(path)"
    #expect(
      done.aside.hasSuffix(
        "sallyport: nothing was changed\nhint: \(hint)  # your changes are kept there\n"))
  }

  @Test func `An editor that saves and fails changes nothing, and its copy is kept`() throws {
    try bench.policy(good)
    editor("[default]\nlook_ahead = 8\n", status: .failed(3))
    let done = edit()
    #expect(done.status == 1)
    let said = "sallyport: the editor exited with status 3: nothing was changed\n"
    #expect(done.aside.hasPrefix("\(said)hint: sallyport config install "), "\(done.aside)")
    #expect(try content() == good)
    #expect(try leftovers().count == 1)
  }

  @Test func `A file that stays as it was is not put in place again`() throws {
    try bench.policy(good)
    let inode = try FileManager.default.attributesOfItem(atPath: bench.policyFile)
    editor(nil)
    #expect(edit().answer == "Nothing was changed.\n")
    let after = try FileManager.default.attributesOfItem(atPath: bench.policyFile)
    #expect(inode[.systemFileNumber] as? Int == after[.systemFileNumber] as? Int)
  }

  @Test func `A missing file begins with its default section`() throws {
    try FileManager.default.removeItem(atPath: bench.policyFile)
    bench.editing = { path in
      let text = try? String(contentsOfFile: path, encoding: .utf8)
      #expect(text?.hasSuffix("\n[default]\n") == true)
      return .done
    }
    #expect(edit().answer.hasPrefix("Installed as "))
    let facts = try FileManager.default.attributesOfItem(atPath: bench.policyFile)
    #expect(facts[.posixPermissions] as? Int == 0o644)
  }

  @Test func `Two at once do not edit it`() throws {
    bench.editing = { _ in
      let second = bench.run("config", "edit", "--conf", bench.policyFile)
      #expect(second.status == 75)
      #expect(second.aside.hasSuffix("is being edited by somebody else\n"))
      return .done
    }
    #expect(edit().status == 0)
    #expect(try leftovers() == [])
  }

  @Test func `Programs are told whether it changed`() throws {
    struct Told: Decodable {
      let file: String
      let changed: Bool
    }
    editor(good)
    let done = try bench.run("config", "edit", "--conf", bench.policyFile, "--json")
      .json(Told.self)
    #expect((done.file, done.changed) == (bench.policyFile, true))
  }
}

@Suite struct `The command` {
  private let bench = Bench()

  private func verify(_ code: String) -> Bench.Outcome {
    bench.run("verify", "--user", "alice", "--allow-missing", on: FakeTerminal([.types(code)]))
  }

  @Test func `goes by the intervals of the policy file`() throws {
    let enrolled = try bench.enroll()
    let late = try enrolled.code(at: bench.now, steps: -3)
    try bench.policy("[default]\nadjacent_intervals = 2\n")
    #expect(verify(late).status == 1)
    try bench.policy("[default]\nadjacent_intervals = 3\n")
    #expect(verify(late).status == 0)
  }

  @Test func `goes by the rules for this machine, this user and the service sallyport`() throws {
    let enrolled = try bench.enroll()
    for (step, rule) in ["match_origin = local", "match_user = alice", "match_service = sallyport"]
      .enumerated()
    {
      let code = try enrolled.code(at: bench.now, steps: step - 8)
      try bench.policy("[rule r]\nmatch_origin = network\nadjacent_intervals = 10\n")
      #expect(verify(code).status == 1)
      try bench.policy("[rule r]\n\(rule)\nadjacent_intervals = 10\n")
      #expect(verify(code).status == 0, "\(rule)")
    }
  }

  @Test func `tells of a broken policy file, and that the last good file applies`() throws {
    let code = try bench.enroll().code(at: bench.now, steps: -8)
    try bench.policy("[default]\nadjacent_intervals = 10\n")
    #expect(verify("000000").aside.hasPrefix("sallyport: wrong code"))
    try bench.policy("[default]\nadjacent_intervals = 100\n")
    let done = verify(code)
    #expect(done.status == 0)
    #expect(
      done.aside.hasPrefix(
        "sallyport: \(bench.policyFile):2: adjacent_intervals: expected a whole number from 0 "
          + "to 10, found \"100\"; the last good file applies\n"), "\(done.aside)")
  }

  @Test func `shows wrong codes left under the budget of the policy file`() throws {
    _ = try bench.enroll()
    try bench.policy("[default]\nguess_budget = 0.02 %\n")
    let text = bench.run("status", "--user", "alice", "--allow-missing").answer
    #expect(text.contains("wrong codes    5 more before a wait from known places, 5 from"))
    try bench.policy("[default]\nadjacent_intervals = 1\n")
    let unlocked = bench.run("unlock", "--user", "alice", "--allow-missing").answer
    #expect(unlocked.contains("20 more wrong codes before a wait, and 20 from elsewhere."))
  }

  @Test func `takes the first code of an app in the intervals of the policy file`() throws {
    try bench.policy("[default]\nadjacent_intervals = 0\n")
    let terminal = FakeTerminal([
      shownCode(at: bench.now, steps: 1), shownCode(at: bench.now),
    ])
    let done = bench.run("enroll", "--user", "bob", "--allow-missing", on: terminal)
    #expect(done.status == 0)
    #expect(done.answer.contains("The phone's clock is 30 s ahead. Set it, then type the next"))
  }

  /// The clock of an app whose code is of this very step is not off.
  @Test func `tells no offset where the policy takes no code of that kind`() throws {
    try bench.policy("[default]\nfactor_totp = off\n")
    // Of one secret in 174 another step, within a day, has the same code.
    let secret = Act.types("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    let terminal = FakeTerminal([secret, shownCode(at: bench.now), .ends])
    let done = bench.run(
      "enroll", "--user", "bob", "--allow-missing", "--secret-from", "-", on: terminal)
    #expect(done.status == 1)
    #expect(done.answer.contains("Wrong code.") && !done.answer.contains("clock is"))
  }
}
