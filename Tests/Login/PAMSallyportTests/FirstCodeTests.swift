import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

private let wrong = "050472"
private let demand = "Set it up now? [y/n]: "
private let first = "Code shown by the app: "
private let last = "Press Enter when you have them: "

/// At the question for the first code.
extension `After the auth phase` {
  @Test func `an empty line and a look at the inverted picture cost no try`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    for answer in ["", "i", "", "I", wrong, "", wrong, wrong, wrong] {
      host.expect(first, echo: true, answer: answer)
    }
    host.expect(first, echo: true, reply: .made { code($0) })
    host.expect(last, echo: true, answer: "")
    #expect(account() == .success)
    let pictures = host.shown.filter { $0.hasPrefix(" ") || $0.hasPrefix("\u{2588}") }.map(drawing)
    #expect(pictures.count == 3)
    guard pictures.count == 3 else { return }
    #expect(pictures[1] == pictures[2])
    // Ink where there was none, and none where it was; below the last line of an odd number of
    // lines there is nothing to turn round.
    let turned: [Character: Character] = [
      "\u{2588}": " ", " ": "\u{2588}", "\u{2580}": "\u{2584}", "\u{2584}": "\u{2580}", "\n": "\n",
    ]
    let (before, after) = (pictures[0].split(separator: "\n"), pictures[1].split(separator: "\n"))
    #expect(before.count == after.count && before.count > 10)
    for (old, new) in zip(before.dropLast(), after) {
      #expect(String(new) == String(old.map { turned[$0] ?? "?" }))
    }
  }

  /// Without the key and the hint below it.
  private func drawing(_ text: String) -> String {
    text.split(separator: "\n").prefix { !$0.contains("Key") }.joined(separator: "\n")
  }

  @Test func `a draws the code in ASCII with the key below, in 80 columns`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    for answer in ["a", "i"] { host.expect(first, echo: true, answer: answer) }
    host.expect(first, echo: true, reply: .made { code($0) })
    host.expect(last, echo: true, answer: "")
    #expect(account() == .success)
    #expect(host.shown.contains { $0.contains("Boxes or \\342? Type a.") })
    let drawings = host.shown.filter { $0.hasPrefix("##") || $0.hasPrefix("  ") }.map(drawing)
    #expect(drawings.count == 2)
    for (text, turned) in zip(drawings, drawings.reversed()) {
      let lines = text.split(separator: "\n").map(String.init)
      #expect(lines.allSatisfy { $0.count == lines[0].count && $0.count <= 80 })
      #expect(lines[0].count == 2 * lines.count)
      #expect(host.shown.contains { $0.hasPrefix("The code has \(lines.count) lines") })
      let other = turned.map { $0 == "#" ? " " : $0 == " " ? "#" : $0 }
      #expect(text == String(other))
    }
    #expect(host.shown.filter { $0.contains("Key to type by hand: ") }.count == 3)
  }

  @Test func `empty lines without end are not answered without end`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    for _ in 0..<20 { host.expect(first, echo: true, answer: "") }
    #expect(account() == .denied)
    #expect(try !isEnrolled("bob"))
  }

  /// A code that no time step within a day shows: one in 170 does by chance.
  private func strange(_ shown: [String]) -> String {
    let time = store.time
    defer { store.time = time }
    let near = Set(
      (-2881...2881).map { step in
        store.time = UnixTime(time.seconds + 30 * Int64(step))
        return code(shown)
      })
    return (100_000...999_999).lazy.map { "\($0)" }.first { !near.contains($0) } ?? "none"
  }

  @Test func `each of five tries is told what was wrong with it`() throws {
    try level("required")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    for answer in ["12345", "abcd-efgh-jkmn-pqrs", "", nil, "", "alice", nil] {
      host.expect(first, echo: true, reply: .made { answer ?? strange($0) })
    }
    #expect(account() == .denied)
    let told = host.shown.filter { $0.hasSuffix("left.") }
    #expect(
      told == [
        "A code has 6 digits. 4 tries left.",
        "A backup code does not show that the app works. 3 tries left.",
        "Wrong code. Is the phone's clock set automatically? 2 tries left.",
        "A code has 6 digits. 1 try left.",
        "Wrong code. Is the phone's clock set automatically? 0 tries left.",
      ])
    #expect(try !isEnrolled("bob"))
  }

  @Test(arguments: [
    (-1200, "20 min behind"), (7200, "2 h ahead"), (-86_400, "24 h behind"), (300, "5 min ahead"),
  ]) func `how far the clock of the phone is off is told, and its code does not enroll`(
    _ seconds: Int64, _ told: String
  ) throws {
    try write("[default]\nenrollment = required\nadjacent_intervals = 5\n")
    #expect(auth("enroll") == .ignore)
    host.expect(demand, echo: true, answer: "y")
    let time = store.time
    let off = UnixTime(time.seconds + seconds + (seconds == 300 ? 30 : 0))
    host.expect(
      first, echo: true,
      reply: .made { shown in
        store.time = off
        defer { store.time = time }
        return code(shown)
      })
    host.expect(first, echo: true, reply: .failure(.conversation))
    #expect(account() == .denied)
    #expect(try !isEnrolled("bob"))
    #expect(
      host.shown.contains(
        "The phone's clock is \(told). Set it, then type the next code. 4 tries left."),
      "\(host.shown.last ?? "")")
  }
}
