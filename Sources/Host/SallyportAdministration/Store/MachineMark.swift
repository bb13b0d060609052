import CSystem
import Glibc
import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// Which machine a store was made on, as far as it tells: docs/enrollment-format.md.
package struct MachineMark: Equatable, Sendable {
  /// A word that no other machine has: 32 hexadecimal digits.
  package static func randomWord() throws(StoreTrouble) -> String {
    String(decoding: hexadecimal(try Store.randomBytes(16)), as: UTF8.self)
  }

  /// In the order of the file.
  package enum Part: String, CaseIterable, Sendable {
    case product, machine, word

    /// For people.
    package var name: String {
      switch self {
      case .product: "product uuid"
      case .machine: "machine-id"
      case .word: "word of sallyport prepare"
      }
    }
  }

  /// A part that a machine does not tell is missing.
  package var parts: [Part: String]
  /// The directories of those whom `prepare --new-machine` could not change, and when it ran
  /// first.
  package var left: [String] = []
  package var since = UnixTime(0)

  /// What says nothing is left out: blanks, and what is the same letter throughout.
  package init(_ told: [Part: String]) {
    parts = [:]
    for (part, text) in told {
      let value = text.split(whereSeparator: \.isWhitespace).first.map { $0.lowercased() } ?? ""
      let letters = value.filter { $0 != "-" }
      if letters.count >= 32, letters.allSatisfy(\.isHexDigit), Set(letters).count > 1 {
        parts[part] = value
      }
    }
  }

  /// The file's text; what is not as it is written there says nothing.
  package init(text: String) {
    var told: [Part: String] = [:]
    let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      .filter { $0.count == 3 && $0[1] == "=" }
    for words in lines {
      if let part = Part(rawValue: words[0]) { told[part] = words[2] }
    }
    self.init(told)
    for words in lines {
      if words[0] == "left" { left.append(words[2]) }
      if words[0] == "since" { since = UnixTime(Int64(words[2]) ?? 0) }
    }
  }

  package var text: String {
    let lines = Part.allCases.compactMap { part in
      parts[part].map { "\(part.rawValue) = \($0)\n" }
    }
    let rest = left.isEmpty ? [] : ["since = \(since.seconds)\n"] + left.map { "left = \($0)\n" }
    return "# Sallyport: the machine that this store was made on.\nversion = 1\n"
      + (lines + rest).joined()
  }

  /// The parts that both machines tell, and tell otherwise. What one of them does not tell is no
  /// difference.
  package func differences(from other: MachineMark) -> [Part] {
    Part.allCases.filter { part in
      guard let own = parts[part], let its = other.parts[part] else { return false }
      return own != its
    }
  }

  /// With what only the other one tells.
  package func completed(by other: MachineMark) -> MachineMark {
    var whole = self
    whole.parts.merge(other.parts) { own, _ in own }
    return whole
  }
}

extension Store {
  private static var mark: Path { "machine" }

  /// nil: of a store that was made before there were marks, or that was emptied.
  package func machineMark() throws(StoreTrouble) -> MachineMark? {
    guard let text = try topFolder().text(of: Store.mark) else { return nil }
    return MachineMark(text: String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self))
  }

  /// On disk before it returns. What `mark` does, one command does at a time.
  package func set(_ mark: @autoclosure () -> MachineMark) throws(StoreTrouble) {
    try put { mark() }
  }

  private func put(_ mark: () -> MachineMark?) throws(StoreTrouble) {
    try changing { _ throws(StoreTrouble) in
      guard let mark = mark() else { return }
      guard let text = Secret(Array(mark.text.utf8)) else { throw .outOfMemory }
      let top = try topFolder()
      try top.put(text, as: Store.mark, in: top)
    }
  }

  /// Takes the store for this machine's where it says of no other; what the mark lacks is added.
  /// One that cannot be read is left to doctor: no login needs it. What `machine` does, one
  /// command does at a time.
  package func adopt(_ machine: @autoclosure () -> MachineMark) throws(StoreTrouble) {
    try put {
      let machine = machine()
      let mark: MachineMark?
      do throws(StoreTrouble) { mark = try machineMark() } catch { return nil }
      if let mark, !mark.differences(from: machine).isEmpty { return nil }
      let whole = mark?.completed(by: machine) ?? machine
      return whole == mark ? nil : whole
    }
  }

  /// Removes and wipes the reserve of a host of a fleet, where there is one.
  package func leaveReserve() throws(StoreTrouble) {
    try Store(reserve: (root / "reserve").text, owner: .effectiveUser).dismantle()
  }

  /// Removes and wipes what is enrolled, the tokens, the reserve, the acts, what helpers did, the
  /// decoy and, last, the mark. The next call removes what a crash leaves. Throws ENOTEMPTY where
  /// something cannot be removed.
  package func empty() throws(StoreTrouble) {
    try leaveReserve()
    try changing { users throws(StoreTrouble) in
      for name in try users.names() {
        try users.holding(name) { () throws(StoreTrouble) in try users.takeAway(name) }
      }
      if let left = try users.names().first {
        throw .system("rmdir", path: (users.path / left).text, errno: ENOTEMPTY)
      }
      try leaveActs()
      let top = try topFolder()
      if try top.has(Store.tokens) { try top.takeAway(Store.tokens) }
      if try top.has(Store.helpdesk) { try top.takeAway(Store.helpdesk) }
      if try top.has("decoy") { try top.takeAway("decoy") }
      try top.remove(Store.mark)
      try top.sync()
    }
  }
}
