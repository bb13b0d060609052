import Foundation
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol
import TestSupport
import Testing

@testable import SallyportSession

/// The accounts and groups of a machine with a helpdesk, which a test changes while a session
/// waits.
final class World: @unchecked Sendable {
  /// By name: uid and primary group.
  var accounts: [String: UInt32] = [
    "carol": 3001, "bob": 3002, "hana": 3003, "dora": 3004, "root": 0, "toor": 0, "carla": 3001,
    "bobby": 3002,
  ]
  /// The first name of each uid.
  var owners: [UInt32: String] = [
    3001: "carol", 3002: "bob", 3003: "hana", 3004: "dora", 0: "root",
  ]
  var groups: [String: Set<String>] = [
    "helpers": ["carol", "hana"],
    "staff": ["carol", "bob", "hana", "dora", "root", "toor", "bobby"],
    "board": [],
  ]
  /// Of these it is not known who is in them.
  var late: Set<String> = []
  var power: [String: RootPower] = [:]
  /// Nobody answers.
  var isAway = false
  /// What happens whenever an answer is asked for.
  var meanwhile: () -> Void = {}
  /// What the fleet answers, and what it was asked; nil: no answer comes.
  var fleet: (HelpRequest) -> HelpAnswer? = { _ in .notServed }
  var asked: [HelpRequest] = []

  func ask(_ request: HelpRequest) throws(StoreTrouble) -> HelpAnswer {
    asked.append(request)
    guard let answer = fleet(request) else { throw .service(path: "/run/service", .unknown) }
    return answer
  }

  func account(_ name: UserName) -> Account {
    let uid = accounts[name.text]
    return Account(name: name, uid: uid, group: uid)
  }

  func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    let group = String(decoding: group, as: UTF8.self)
    guard let members = groups[group], !late.contains(group) else { return .unknown }
    return members.contains(account.name.text) ? .yes : .no
  }
}

/// A store with carol, who is a helper, and bob, and sessions of a helper on it.
final class Helpdesk {
  let directory: TemporaryDirectory
  let store: Store
  let world = World()
  let policyFile: String
  private var used = 0
  /// What was shown in the last session before its end.
  private(set) var told: [String] = []
  /// What was asked.
  private(set) var prompts: [String] = []
  var acceptsPassword = true

  static let lines = "helpdesk = helpers\nhelpdesk_for = staff\nhelpdesk_never = board\n"
  /// What is not there by itself, too.
  static let may = "helpdesk_may = status, unlock, pass, pass-enroll, block\n"
  static let acts: [HelpAct] = [
    .status, .unlock, .pass, .passEnroll, .block(until: nil), .unblock,
  ]

  init(_ lines: String = Helpdesk.lines + Helpdesk.may) throws {
    directory = try TemporaryDirectory()
    store = Store(root: directory.path + "/store", owner: .effectiveUser)
    policyFile = directory.path + "/sallyport.conf"
    try store.prepare()
    try policy(lines)
    for name in ["carol", "bob", "hana"] { try enroll(name) }
  }

  func policy(_ lines: String) throws {
    try Data("[default]\n\(lines)".utf8).write(to: URL(fileURLWithPath: policyFile))
  }

  func account(_ name: String) throws -> Account {
    world.account(try #require(UserName(name.utf8)))
  }

  func enroll(_ name: String, uid: UInt32? = nil, id: UInt64? = nil) throws {
    let user = try #require(UserName(name.utf8))
    let salt = [UInt8](repeating: 1, count: BackupCodeSet.saltLength)
    let digests = try (0..<20).map {
      try BackupCode.digest(try secret(Helpdesk.code($0)), salt: salt)
    }
    let phone = Authenticator(
      id: 1, name: try #require(Label("phone".utf8)), parameters: .standard,
      secret: try secret(Array(name.utf8) + [UInt8](repeating: 7, count: 20)),
      initialLastAccepted: nil, created: UnixTime(1))
    let uid = uid ?? world.accounts[name]
    let enrollment = Enrollment(
      id: id ?? UInt64(uid ?? 0) + 1, user: user, uid: uid, created: UnixTime(1),
      authenticators: [phone],
      backupCodes: BackupCodeSet(id: 5, salt: salt, digests: digests))
    try store.replace(enrollment, LoginState(initialFor: enrollment))
  }

  /// One that was not used yet, of the one who asks.
  func nextCode() -> String {
    used += 1
    return Helpdesk.code(used - 1)
  }

  private static func code(_ number: Int) -> String {
    "7KMF2X9QD4TW0H" + String("ABCDEFGHJKMNPQRSTVWX".dropFirst(number).prefix(1)) + "A"
  }

  /// How a session of this helper ends. `between`: what happens after the password; `meanwhile`:
  /// what happens while the code is asked for.
  func help(
    _ act: HelpAct, _ name: String, by helper: String = "carol", typing code: String? = nil,
    between: @escaping () throws -> Void = {},
    meanwhile: (SessionConnection) throws -> Void = { _ in }
  ) throws -> FromSession {
    let (connection, session) = try session(of: helper, between: between)
    let ended = Ending()
    Thread.detachNewThread { ended.put(session.last()) }
    (told, prompts) = ([], [])
    let change = ChangeRequest.help(act, try #require(UserName(name.utf8)))
    try #require(connection.send(FromUser.change(change).encoded()))
    while true {
      if let last = ended.last { return last }
      guard let packet = try? connection.receive(within: 20),
        let said = FromSession.decode(packet)
      else { continue }
      switch said {
      case .prompt(let text, _):
        prompts.append(String(decoding: text, as: UTF8.self))
        try meanwhile(connection)
        let answer = try secret(code ?? nextCode())
        try #require(connection.send(FromUser.answer(answer).encoded()))
      case .text(let text): told.append(String(decoding: text, as: UTF8.self))
      case .secret, .done, .status, .passed, .lent, .refused: return said
      }
    }
  }

  private func session(of helper: String, between: @escaping () throws -> Void) throws
    -> (SessionConnection, Session)
  {
    var ends: [Int32] = [-1, -1]
    // SAFETY: filled within the call.
    try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
    let (store, world, isRight) = (store, world, acceptsPassword)
    let environment = SessionEnvironment(
      store: store, policyFile: Array(policyFile.utf8),
      authority: {
        world.meanwhile()
        return RecordAuthority(store: store)
      }, takeTurn: { _ in true },
      accepts: { _ in
        do { try between() } catch { return false }
        return isRight
      },
      askFleet: { request throws(StoreTrouble) in try world.ask(request) },
      find: { name throws(StoreTrouble) in
        if world.isAway { throw .system("getpwnam", path: "", errno: EIO) }
        return world.account(name)
      },
      owner: { uid throws(StoreTrouble) in
        world.owners[uid].flatMap { UserName($0.utf8) }.map { world.account($0) }
      },
      isMember: { world.isMember($0, of: $1) }, isInGroup: { world.isMember($0, of: $1) },
      rootPower: { world.power[$0.name.text] ?? .none })
    let account = try account(helper)
    let client = Client(process: getpid(), user: try #require(account.uid), account: account)
    return (
      SessionConnection(ends[0], seconds: 60),
      Session(client, SessionConnection(ends[1], seconds: 60), environment)
    )
  }

  func isBlocked(_ name: String) throws -> Bool {
    try store.isBlocked(try account(name), at: { () throws(StoreTrouble) in try Clock.now() })
  }

  /// The open passes of somebody.
  func passes(of name: String) throws -> Int {
    let account = try account(name)
    if account.uid == nil { return 0 }
    return try store.load(account).map { record in
      record.enrollment.openPasses(record.state, at: try Clock.now()).count
    } ?? 0
  }

  /// What `helpdesk/NAME` has.
  func counted(_ name: String) -> String? {
    try? String(contentsOfFile: directory.path + "/store/helpdesk/\(name)", encoding: .utf8)
  }

  /// The lines of the file of acts.
  func acts() -> [String] {
    let folder = directory.path + "/store/acts"
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return files.sorted().flatMap { file in
      ((try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)) ?? "")
        .split(separator: "\n").map(String.init)
    }
  }

  func count(_ name: String, _ text: String) throws {
    let folder = directory.path + "/store/helpdesk"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let file = "\(folder)/\(name)"
    #expect(FileManager.default.createFile(atPath: file, contents: Data(text.utf8)))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
  }
}

/// What the thread of a session gives.
private final class Ending: @unchecked Sendable {
  private let lock = NSLock()
  private var value: FromSession?

  var last: FromSession? { lock.withLock { value } }
  func put(_ last: FromSession) { lock.withLock { value = last } }
}
