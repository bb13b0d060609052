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
    try fake.write("/run/x", "")
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
        .map { $0.split(separator: "/").last.map(String.init) ?? "" }
      let ours = planned == nil ? [] : ["00-sallyport.conf"]
      #expect(files == ["00-aaa.conf"] + ours + ["50-cloud-init.conf"])
      let isCopy = copy[line + 1].contains("/run/sallyport-sshd-")
      #expect(isCopy == (planned != nil))
    }
    #expect(copy.first.map { FileManager.default.fileExists(atPath: $0) } == false)
  }
}
