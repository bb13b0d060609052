import Foundation
import PAMStack
import Testing

@testable import SallyportDoctor

/// What `pam enable` writes for sshd.
@Suite struct `A file of ours among sshd's` {
  private let fake = FakeMachine()

  @Test(arguments: SSHMethod.allCases.filter { $0 != .none })
  func `our file is known by its text`(method: SSHMethod) {
    let ways = method == .passwordCode ? [] : SSHStage.Passing.allCases
    let people = [
      SSHPeople(), SSHPeople(keyGroup: "keys", aloneUsers: ["ansible", "git"]),
      SSHPeople(keyUsers: ["alice", "carol"]),
    ]
    for people in method == .match ? people : [SSHPeople()] {
      for passing in [nil] + ways.map(Optional.some) {
        let stage = SSHStage(method: method, passing: passing, people: people)
        #expect(SSHStage(text: stage.text) == stage || people == SSHPeople())
        #expect(SSHStage(text: stage.text + "#") == nil)
      }
    }
  }

  @Test(arguments: [
    ("Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n", 0),
    ("UseDNS no\nInclude sshd_config.d/*.conf\nUsePAM yes\n", 1),
    ("Include /etc/ssh/sshd_config.d/1*.conf\nUsePAM yes\n", nil),
    ("UsePAM yes\n", nil),
  ])
  func `a copy for sshd has the planned file where sshd would read it`(text: String, line: Int?)
    throws
  {
    try fake.write("/etc/ssh/sshd_config", text)
    for name in ["00-aaa", "00-sallyport", "50-cloud-init"] {
      try fake.write("/etc/ssh/sshd_config.d/\(name).conf", "UseDNS no\n")
    }
    var copy: [String] = []
    var machine = fake.machine
    machine.run = { words in
      copy = words.count > 3 ? [words[3]] : []
      let text = copy.first.flatMap { try? String(contentsOfFile: $0, encoding: .utf8) } ?? ""
      copy += text.components(separatedBy: "\n")
      return .seen(CommandOutput(status: 255, errors: "\(words[3]) line 1: x"))
    }
    for planned in ["Match User alice\n  UsePAM no\n", nil] {
      let changed = machine.assuming(sshFile: planned)
      let said = changed.run(["sshd", "-T"]).value
      #expect(said?.errors == "/etc/ssh/sshd_config line 1: x")
      let blocks = SSHConfiguration(of: changed).blocks
      #expect(blocks.map(\.location.file) == (planned == nil || line == nil ? [] : [SSHStage.path]))
      guard let line else { continue }
      let files = copy[line + 1].split(separator: "\"").filter { $0.hasPrefix("/") }
        .map {
          $0.hasPrefix("/proc/") ? "ours" : $0.split(separator: "/").last.map(String.init) ?? ""
        }
      #expect(
        files == ["00-aaa.conf"] + (planned == nil ? [] : ["ours"]) + ["50-cloud-init.conf"])
    }
  }

  // decisive
  @Test func `a copy has it too where another file includes it`() throws {
    let ours = "Match User alice\n  UsePAM no\n"
    try fake.write("/etc/ssh/sshd_config", "Include /etc/ssh/site.conf\nInclude /etc/ssh/b.conf\n")
    try fake.write("/etc/ssh/site.conf", "UseDNS no\nInclude sshd_config.d/*.conf\n")
    try fake.write("/etc/ssh/b.conf", "UsePAM yes\n")
    try fake.write("/etc/ssh/sshd_config.d/50-x.conf", "UseDNS yes\n")
    var read: [[String]] = []
    var machine = fake.machine
    machine.run = { words in
      var path = words[3]
      while let text = try? String(contentsOfFile: path, encoding: .utf8), path.hasPrefix("/proc/")
      {
        let lines = text.components(separatedBy: "\n")
        read.append(lines)
        let included = lines.flatMap { $0.split(separator: "\"") }.first { $0.hasPrefix("/proc/") }
        path = included.map(String.init) ?? ""
      }
      return .seen(CommandOutput(status: 255, errors: "\(words[3]): \(read[0][0])"))
    }
    let said = machine.assuming(sshFile: ours).run(["sshd", "-T"]).value
    #expect(said?.errors == "/etc/ssh/sshd_config: Include \"/etc/ssh/site.conf\"")
    #expect(read.count == 3 && read.last?.joined(separator: "\n") == ours, "\(read)")
    #expect(read[0][1] == "Include /etc/ssh/b.conf" && read[1][0] == "UseDNS no")
    #expect(read[1][1].hasSuffix("\"\(fake.root)/etc/ssh/sshd_config.d/50-x.conf\""))
  }
}
