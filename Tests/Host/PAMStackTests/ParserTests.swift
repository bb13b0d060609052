import Testing

@testable import PAMStack

@Suite struct `Reading a stack` {
  /// `phase level control-of-success module arguments`, one for each entry.
  private func entries(
    _ text: String, _ more: [String: String] = [:], debian: Bool = true,
    _ rules: LibpamRules = .before16
  ) -> [String] {
    described(Stacks.parse("x", in: more.merging(["x": text]) { $1 }, debian: debian, rules))
  }

  private func described(_ stack: ServiceStack) -> [String] {
    PAMPhase.allCases.flatMap { stack[$0] }.map { entry in
      let what: String
      switch entry.kind {
      case .module: what = "\(entry.controls[.success]) \(entry.module)"
      case .mustFail: what = "must fail"
      case .substack: what = "substack \(entry.module)"
      }
      return ([entry.location.text, "\(entry.phase)", "\(entry.level)", what] + entry.arguments)
        .joined(separator: " ")
    }
  }

  @Test(arguments: [
    ("auth required pam_x.so", "x:1 auth 0 ok pam_x.so"),
    ("\tAUTH  Sufficient\tpam_x.so", "x:1 auth 0 done pam_x.so"),
    (
      "auth optional pam_x.so one [two three] [a\\]b] four#five",
      "x:1 auth 0 ok pam_x.so one two three a]b four"
    ),
    ("\n# comment\n\nauth required pam_x.so", "x:4 auth 0 ok pam_x.so"),
    ("auth \\\n  required \\\n pam_x.so", "x:1 auth 0 ok pam_x.so"),
    ("auth \\\n# a comment between\n\n required pam_x.so", "x:1 auth 0 ok pam_x.so"),
    ("-auth required /lib/pam_x.so", "x:1 auth 0 ok /lib/pam_x.so"),
    ("auth [success=2 default=ignore] pam_x.so", "x:1 auth 0 jump(2) pam_x.so"),
    ("auth [success=okdefault=bad]pam_x.so", "x:1 auth 0 ok pam_x.so"),
    ("auth [ default = die success=ok ] pam_x.so", "x:1 auth 0 ok pam_x.so"),
    ("auth [default=die ignore=ok] pam_x.so", "x:1 auth 0 die pam_x.so"),
    ("auth [success=2147483647] pam_x.so", "x:1 auth 0 jump(2147483647) pam_x.so"),
    ("auth success=done pam_x.so", "x:1 auth 0 done pam_x.so"),
    ("auth requierd pam_x.so", "x:1 auth 0 bad pam_x.so"),
    ("auth [success=0] pam_x.so", "x:1 auth 0 bad pam_x.so"),
    ("auth [sucess=ok] pam_x.so", "x:1 auth 0 bad pam_x.so"),
    ("auth", "x:1 auth 0 must fail"),
    ("auth required", "x:1 auth 0 must fail"),
    ("atuh sufficient pam_x.so", "x:1 auth 0 must fail"),
    ("auth required pam_x.so\r\n", "x:1 auth 0 ok pam_x.so\r"),
    ("auth required pam_x.so\0 hidden", "x:1 auth 0 ok pam_x.so"),
    ("auth include missing", "x:1 auth 0 must fail"),
    ("auth substack missing", "x:1 auth 0 substack missing|x:1 auth 0 must fail"),
    ("auth include y", "y:1 auth 0 ok pam_y.so"),
    ("auth substack y", "x:1 auth 0 substack y|y:1 auth 1 ok pam_y.so"),
    ("@include y", "y:1 auth 0 ok pam_y.so|y:2 account 0 ok pam_z.so"),
    ("auth include /etc/pam.d/y", "y:1 auth 0 ok pam_y.so"),
  ])
  func `a line is read as libpam reads it`(text: String, wanted: String) {
    let found = entries(text, ["y": "auth required pam_y.so\naccount required pam_z.so"])
    let prefixed = wanted.split(separator: "|").map { "/etc/pam.d/\($0)" }
    #expect(found == prefixed)
  }

  private static let long = String(repeating: "x ", count: 600)

  @Test(arguments: [
    ("auth \\\n# between\n required pam_x.so", "x:1 auth 0 must fail|x:3 auth 0 must fail"),
    (
      "auth required pam_x.so \\\n\naccount required pam_x.so",
      "x:1 auth 0 ok pam_x.so|x:3 account 0 ok pam_x.so"
    ),
    ("\\\n# first\nauth required pam_x.so", "x:3 auth 0 ok pam_x.so"),
    ("auth [success=4294967297] pam_x.so", "x:1 auth 0 bad pam_x.so"),
    ("#\(long)auth required pam_x.so\naccount required pam_x.so", "x:2 account 0 ok pam_x.so"),
  ])
  func `since 1.6 libpam reads it otherwise`(text: String, wanted: String) {
    #expect(entries(text, [:], .since16) == wanted.split(separator: "|").map { "/etc/pam.d/\($0)" })
    #expect(entries(text, [:], .since16) != entries(text))
  }

  @Test func `an include that nobody knows is an unknown type outside Debian`() {
    #expect(
      entries("@include y", ["y": "auth required pam_y.so"], debian: false)
        == ["/etc/pam.d/x:1 auth 0 must fail"])
  }

  @Test(arguments: [
    ("@include missing", StackProblem.cannotInclude("missing")),
    ("auth required pam_x.so \\", .unreadable),
    ("auth required /", .unreadable),
    ("auth include", .noFileNamed),
    ("auth include x", .endless("x")),
    ("@include x", .endless("x")),
    ("auth include x\nauth include x", .endless("x")),
  ])
  func `what libpam gives up keeps everybody out`(text: String, problem: StackProblem) {
    let stack = Stacks.parse("x", in: ["x": text, "other": "auth required pam_permit.so"])
    #expect(stack.isAborted)
    #expect(stack.faults.contains { $0.problem == problem })
    #expect(stack.verdict(.auth) { _ in .success } == .abort)
  }

  @Test func `substacks nest fifteen deep and no deeper`() {
    var files = ["s16": "auth required pam_permit.so"]
    for level in 0..<16 { files["s\(level)"] = "auth substack s\(level + 1)" }
    let deep = Stacks.parse("s1", in: files)[.auth]
    #expect(deep.last.map { "\($0.kind) \($0.level)" } == "module 15")
    let deeper = Stacks.parse("s0", in: files)[.auth]
    #expect(deeper.last.map { "\($0.kind) \($0.level)" } == "mustFail 15")
  }

  @Test func `since 1.6 includes nest no deeper than substacks`() {
    var files = ["s16": "auth required pam_permit.so"]
    for level in 0..<16 { files["s\(level)"] = "auth include s\(level + 1)" }
    for (first, rules, kind) in [
      ("s1", LibpamRules.since16, "module"), ("s0", .since16, "mustFail"),
      ("s0", .before16, "module"),
    ] {
      let found = Stacks.parse(first, in: files, rules)[.auth]
      #expect(found.map { "\($0.kind)" } == [kind], "\(first) \(rules)")
    }
  }

  @Test func `other stands in for each phase that a service has no lines for`() {
    let files = [
      "x": "auth required pam_x.so", "other": "auth required pam_o.so\naccount required pam_o.so",
    ]
    #expect(
      described(Stacks.parse("x", in: files)) == [
        "/etc/pam.d/x:1 auth 0 ok pam_x.so", "/etc/pam.d/other:2 account 0 ok pam_o.so",
      ])
    #expect(Stacks.parse("nobody", in: files)[.auth].count == 1)
    #expect(Stacks.parse("nobody", in: [:]).isAborted)
  }

  @Test func `a broken other keeps everybody out of every service`() {
    let files = ["x": "auth required pam_permit.so", "other": "@include missing"]
    #expect(Stacks.parse("x", in: files).isAborted)
  }

  @Test func `a service of the vendor gives way to the administrator's`() {
    let read: (String) -> [UInt8]? = { path in
      switch path {
      case "/usr/lib/pam.d/x": Array("auth required pam_vendor.so\n".utf8)
      case "/usr/lib/pam.d/y", "/etc/pam.d/y": Array("auth include x # \(path)\n".utf8)
      case _: nil
      }
    }
    let vendor = StackParser.parse(service: "X", .debian(.before16, read))
    #expect(vendor.file == "/usr/lib/pam.d/x")
    #expect(StackParser.parse(service: "/y", .debian(.before16, read)).file == "/etc/pam.d/y")
    // Debian's libpam includes from /etc/pam.d alone.
    #expect(
      StackParser.parse(service: "y", .debian(.before16, read))[.auth].map(\.kind) == [.mustFail])
    #expect(
      StackParser.parse(service: "y", .upstream(.before16, read))[.auth].map(\.kind) == [.module])
  }

  @Test func `what is longer than libpam's buffer is a line of its own`() {
    let comment = "#" + String(repeating: "-", count: 1022)
    let stack = Stacks.parse("x", in: ["x": "\(comment)auth sufficient pam_permit.so\n"])
    #expect(stack[.auth].map(\.module) == ["pam_permit.so"])
    #expect(stack.faults.map(\.problem) == [.overlong])
  }

  @Test func `any bytes give a result`() {
    var state: UInt64 = 7
    let words = ["auth", "[", "]", "\\\n", "=", "include x", "substack", "\0", "#", "\n", " ", "9"]
    for _ in 0..<2000 {
      var text = ""
      for _ in 0..<40 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        text += words[Int(state >> 33) % words.count]
      }
      let stack = StackParser.parse(Array(text.utf8))
      for phase in PAMPhase.allCases { _ = stack.verdict(phase) { _ in .success } }
    }
  }
}
