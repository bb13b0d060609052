import Foundation
import Glibc
import PAMStack
import Testing

@testable import SallyportDoctor

@Suite struct `Doctor on sallyportd` {
  /// What there is when all is well.
  static var daemon: DaemonFacts {
    var daemon = DaemonFacts()
    daemon.directory = .seen(FileFacts(mode: 0o755, isRegular: false, isDirectory: true))
    daemon.root = socket(daemon.root)
    daemon.anyUsers = socket(daemon.anyUsers)
    daemon.starter = .systemd
    return daemon
  }

  static func socket(_ socket: SocketFacts, owner: UInt32 = 0, mode: UInt32? = nil) -> SocketFacts {
    var socket = socket
    socket.file = .seen(
      FileFacts(owner: owner, mode: mode ?? socket.mode, isRegular: false, isSocket: true))
    socket.answer = .right
    return socket
  }

  static func findings(
    of services: [String], _ words: [String] = [], _ change: (inout DaemonFacts) -> Void = { _ in }
  ) -> [Finding] {
    var daemon = daemon
    change(&daemon)
    return DaemonFindings(
      daemon, services.map { ServiceFacts(name: $0, lines: Healthy.lines(words)) }
    ).all
  }

  @Test func `A machine on which nothing asks it is well without it`() {
    let found = Self.findings(of: ["sshd", "login"]) { $0 = DaemonFacts() }
    #expect(found.wrong == [] && found.count == 1 && found[0].fixes.isEmpty)
    #expect(Self.findings(of: ["sshd", "su", "swaylock"]).wrong == [])
  }

  @Test func `A program that is not root needs its socket`() {
    let found = Self.findings(of: ["swaylock", "sshd"]) { $0.anyUsers.file = .absent }
    #expect(found.wrong == ["daemon-missing error"])
    #expect(found.first?.effect == .locksOut("everybody from swaylock"))
    #expect(
      found.first?.fixes == [
        .command("systemctl enable --now sallyport.socket sallyport-root.socket")
      ])
    // A socket that a killed service left behind, on which nobody listens.
    #expect(
      Self.findings(of: ["i3lock"]) { $0.anyUsers.answer = .nobody }.wrong
        == ["daemon-missing error"])
    // Of a store of its own, sallyportd knows nothing.
    #expect(Self.findings(of: ["swaylock"], ["store=/srv/s"]) { $0 = DaemonFacts() }.wrong == [])
  }

  @Test func `For su and sudo it is advice`() {
    let found = Self.findings(of: ["su", "sudo"]) {
      $0 = DaemonFacts()
      $0.starter = .initScript
    }
    #expect(found.wrong == [] && found.map(\.id) == ["daemon-callers"])
    #expect(
      found.first?.fixes == [
        .command(
          "update-rc.d sallyport defaults && update-rc.d sallyport enable "
            + "&& service sallyport start")
      ])
  }

  /// {what is done to it, the finding with nobody who asks, with su and swaylock}
  static let faults: [(String, @Sendable (inout DaemonFacts) -> Void, String, String)] = [
    (
      "no socket", { $0.root.file = .seen(FileFacts()) }, "daemon-kind warning",
      "daemon-kind error"
    ),
    (
      "a directory", { $0.anyUsers.file = .seen(FileFacts(isRegular: false, isDirectory: true)) },
      "daemon-kind warning", "daemon-kind error"
    ),
    (
      "another's", { $0.root = socket($0.root, owner: 1000) }, "daemon-owner warning",
      "daemon-owner warning"
    ),
    (
      "too open", { $0.root = socket($0.root, mode: 0o666) }, "daemon-mode warning",
      "daemon-mode warning"
    ),
    (
      "too closed", { $0.anyUsers = socket($0.anyUsers, mode: 0o660) }, "daemon-mode warning",
      "daemon-mode error"
    ),
    (
      "an open directory",
      { $0.directory = .seen(FileFacts(mode: 0o1777, isRegular: false, isDirectory: true)) },
      "daemon-directory warning", "daemon-directory error"
    ),
    (
      "another's directory",
      {
        $0.directory = .seen(
          FileFacts(owner: 7, mode: 0o755, isRegular: false, isDirectory: true))
      }, "daemon-directory warning", "daemon-directory error"
    ),
    (
      "a file", { $0.directory = .seen(FileFacts()) }, "daemon-directory warning",
      "daemon-directory error"
    ),
    ("silent", { $0.root.answer = .late }, "daemon-silent warning", "daemon-silent error"),
    (
      "old", { $0.anyUsers.answer = .otherVersion }, "daemon-version warning",
      "daemon-version error"
    ),
    (
      "a stranger", { $0.anyUsers.answer = .foreign(1000) }, "daemon-foreign warning",
      "daemon-foreign error"
    ),
    (
      "not asked", { $0.root.answer = .unasked("connect: no") }, "daemon-socket unseen",
      "daemon-socket unseen"
    ),
  ]

  // shows: listener
  @Test(arguments: faults.indices) func `What is wrong with it locks out who asks it`(index: Int) {
    let (what, change, idle, asked) = Self.faults[index]
    #expect(Self.findings(of: ["sshd"]) { change(&$0) }.wrong == [idle], "\(what)")
    let found = Self.findings(of: ["su", "swaylock"]) { change(&$0) }
    #expect(found.wrong == [asked], "\(what)")
    for finding in found where finding.severity != .unseen { #expect(!finding.fixes.isEmpty) }
  }

  // MARK: sallyport-session

  static func sessions(
    of services: [String] = [], _ change: (inout DaemonFacts) -> Void = { _ in }
  ) -> [Finding] {
    findings(of: services) {
      ($0.isSelfService, $0.hasStack, $0.session) = (true, true, socket($0.session))
      change(&$0)
    }
  }

  @Test func `Users who may change their own enrollment need a session and its service`() {
    #expect(Self.sessions(of: ["su"]).wrong == [])
    let without: [(inout DaemonFacts) -> Void] = [
      { $0.session.file = .absent }, { $0.session.answer = .nobody }, { $0.root.file = .absent },
    ]
    for change in without {
      let found = Self.sessions(change)
      #expect(found.wrong == ["session-missing warning"])
      #expect(
        found.first?.fixes == [
          .command("systemctl enable --now sallyport-root.socket sallyport-session.socket")
        ])
    }
    #expect(Self.sessions { $0.hasStack = false }.wrong == ["session-stack warning"])
    #expect(
      Self.sessions { $0.session = Self.socket($0.session, mode: 0o600) }.wrong
        == ["daemon-mode warning"])
    // Where nobody may, none of it matters.
    #expect(Self.findings(of: ["su", "sallyport"]).wrong == [])
  }

  @Test func `A helpdesk needs a session and its service, and somebody to help`() {
    let helpdesk: (inout DaemonFacts) -> Void = {
      ($0.isSelfService, $0.hasHelpdesk, $0.isAnybodyHelped) = (false, true, true)
    }
    #expect(Self.sessions(helpdesk).wrong == [])
    let found = Self.sessions {
      helpdesk(&$0)
      $0.session.file = .absent
      $0.isAnybodyHelped = false
      $0.rootGaps = ["/etc/sudoers:7: not understood"]
    }
    #expect(
      found.wrong == [
        "session-missing warning", "helpdesk-nobody warning", "helpdesk-unclear warning",
      ])
    for finding in found { #expect(!finding.fixes.isEmpty) }
  }

  @Test func `A stack that asks for a code before sallyport-session does is named`() {
    let found = Self.sessions(of: ["sallyport"])
    #expect(found.wrong == ["session-two-codes warning"])
    #expect(found.first?.location != nil && found.first?.fixes.isEmpty == false)
  }

  @Test func `Whether users may change their own enrollment is read from any section`() throws {
    for (text, isSelfService) in [
      ("[default]\nself_service = yes\n", true),
      ("[default]\n[rule a]\nmatch_group = staff\nself_service = yes\n", true),
      ("[default]\nself_service = no\n", false), ("[default]\n# self_service = yes\n", false),
      ("[default]\nhelpdesk = a\nhelpdesk_for = b\n", false),
    ] {
      let fake = FakeMachine()
      try fake.write("/etc/security/sallyport.conf", text)
      try fake.write("/etc/pam.d/sallyport", "")
      try fake.write("/etc/sudoers", "root ALL=ALL\nx\n")
      try fake.write("/run/sallyport/x", "")
      let listening = fake.socket(at: "/run/sallyport/session", listens: true)
      defer { close(listening) }
      let daemon = DaemonFacts(of: fake.machine)
      #expect(daemon.isSelfService == isSelfService && daemon.hasStack)
      #expect(daemon.rootGaps == (daemon.hasHelpdesk ? ["/etc/sudoers:2: not understood"] : []))
      #expect(daemon.hasHelpdesk == text.contains("helpdesk"))
      #expect(daemon.isAnybodyHelped == text.contains("helpdesk"))
      let isServed = isSelfService || daemon.hasHelpdesk
      #expect(daemon.session.answer == (isServed ? .right : .nobody))
    }
  }

  // MARK: a machine

  @Test func `Its sockets are found, and asked for a second`() throws {
    let fake = FakeMachine()
    try fake.write("/etc/init.d/sallyport", "")
    try fake.write("/run/sallyport/x", "")
    let left = fake.socket(at: "/run/sallyport/root", listens: false)
    let deaf = fake.socket(at: "/run/sallyport/socket", listens: true)
    defer {
      close(left)
      close(deaf)
    }
    let start = Date()
    let daemon = DaemonFacts(of: fake.machine)
    #expect(Date().timeIntervalSince(start) < 20)
    #expect(daemon.root.file.value?.isSocket == true && daemon.root.answer == .nobody)
    #expect(daemon.anyUsers.answer == (geteuid() == 0 ? .late : .foreign(geteuid())))
    #expect(daemon.directory.value?.isDirectory == true)
    #expect(daemon.starter == .initScript)
  }

  @Test func `A service that closes the connection at once is another version`() throws {
    let fake = FakeMachine()
    try fake.write("/run/sallyport/x", "")
    let other = fake.socket(at: "/run/sallyport/root", listens: true)
    let thread = Thread {
      close(accept(other, nil, nil))
      close(other)
    }
    thread.start()
    let answer = DaemonFacts(of: fake.machine).root.answer
    #expect(answer == (geteuid() == 0 ? .otherVersion : .foreign(geteuid())))
  }

  @Test func `What is in its place and no socket is not asked`() throws {
    let fake = FakeMachine()
    try fake.write("/run/sallyport/root", "")
    try fake.write("/run/systemd/system/x", "")
    try fake.write("/usr/lib/systemd/system/sallyport.socket", "")
    let daemon = DaemonFacts(of: fake.machine)
    #expect(daemon.root.file.value?.isSocket == false && daemon.root.answer == .nobody)
    #expect(daemon.anyUsers.file == .absent && daemon.starter == .systemd)
    #expect(DaemonFacts(of: FakeMachine().machine) == DaemonFacts())
  }
}
