import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// The loosest file there is, damaged in 100,000 ways: it lets everybody in who is not enrolled.
@Suite struct `A damaged policy file of a login` {
  private static let loosest = Array(
    """
    # sample
    [default]
    state = enabled
    adjacent_intervals = 10
    look_ahead = 100
    guess_budget = 10 %
    enrollment = voluntary
    local_services = sudo, su
    [rule everybody]
    match_service = sshd, sudo
    match_origin = 0.0.0.0/0, ::/0, local, network
    enrollment = voluntary
    state = disabled
    factor_totp = on
    """.utf8)

  private let store: TestStore
  private let path: String

  init() throws {
    store = try TestStore()
    path = store.directory.path + "/policy.conf"
    #expect(FileManager.default.createFile(atPath: path, contents: nil))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  /// What bob, who is not enrolled, is told if he answers nothing; with all words that loosen.
  private func answer(to text: [UInt8]) throws -> (code: ReturnCode, log: String) {
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data(text))
    try file.close()
    let host = ScriptedHost()
    host.userName = .success(Array("bob".utf8))
    host.expect(reply: .failure(.conversation))
    let words = ["conf=" + path, "nullok", "nodelay"].map { Array($0.utf8) }
    let code = authenticate(host, ModuleArguments(words), store: store)
    return (code, host.log.first?.line ?? "")
  }

  /// Whether he is asked, and so refused: he has no code. PAM_IGNORE would let him pass.
  private func refuses(_ text: [UInt8], _ line: Int) throws -> Bool {
    let (code, log) = try answer(to: text)
    if code == .conversation, log.contains("\(path):\(line)") { return true }
    Issue.record("\(code): \(log)\n\(String(decoding: text, as: UTF8.self))")
    return false
  }

  /// A quarter of them each, side by side. Under a sanitizer, which takes many times as long, a
  /// tenth: see Tests/sanitize.
  // decisive
  // shows: policy-mistake
  @Test(arguments: [UInt64(31), 32, 33, 34])
  func `100,000 mutations never crash, and those that do not parse let nobody in unasked`(
    seed: UInt64
  ) throws {
    let isSanitized = ProcessInfo.processInfo.environment["SALLYPORT_SANITIZED"] != nil
    let rounds = isSanitized ? 2_500 : 25_000
    var damage = Damage(seed: seed)
    var broken = 0
    for _ in 0..<rounds {
      let text = damage.done(to: Self.loosest)
      let login = PolicyRequest(
        service: [], user: nil, isRemote: true, address: nil, parse: Addresses.numeric,
        membership: { _ in .unknown })
      let file = PolicyFile(try #require(Secret(text)), base: Policy(), login)
      guard let problem = file.problem else { continue }
      broken += 1
      #expect((1...text.count(where: { $0 == 0x0a }) + 1).contains(problem.line))
      // Whole logins cost more: of the broken files one in twenty goes through a real one.
      if broken % 20 == 0, try !refuses(text, problem.line) { return }
    }
    #expect(broken > rounds / 2)
  }

  @Test func `whole it lets him pass, and broken later the last good one still does`() throws {
    #expect(try answer(to: Self.loosest).code == .ignore)
    #expect(try answer(to: Self.loosest + Array("\nnonsense".utf8)).code == .ignore)
  }
}

/// Bytes changed, put in or left out, lines doubled, moved or lost, always in the same way.
private struct Damage {
  private var random: Seeded

  init(seed: UInt64) { random = Seeded(seed) }

  mutating func done(to text: [UInt8]) -> [UInt8] {
    var text = text
    for _ in 0..<Int.random(in: 1...6, using: &random) where !text.isEmpty { change(&text) }
    return text
  }

  private mutating func change(_ text: inout [UInt8]) {
    let place = text.indices.randomElement(using: &random) ?? 0
    let pieces = ["[", "]", "=", "\n", "#", "%", ",", "\0", "\u{ff}", "state = disabled\n", "9"]
    switch Int.random(in: 0...5, using: &random) {
    case 0: text[place] = UInt8.random(in: 0...255, using: &random)
    case 1: text.remove(at: place)
    case 2: text.insert(contentsOf: (pieces.randomElement(using: &random) ?? "").utf8, at: place)
    case 3: text.removeSubrange(place..<min(text.count, place + 30))
    case 4: text.swapAt(place, text.indices.randomElement(using: &random) ?? 0)
    case _: move(&text)
    }
  }

  private mutating func move(_ text: inout [UInt8]) {
    var lines = text.split(separator: 0x0a, omittingEmptySubsequences: false)
    let line = lines[lines.indices.randomElement(using: &random) ?? 0]
    lines.insert(line, at: lines.indices.randomElement(using: &random) ?? 0)
    text = Array(lines.joined(separator: [0x0a]))
  }
}
