package import OneTimePassword
package import SallyportCore

/// What a policy file says of its helpdesk: in `[default]` alone, and for sessions alone. No login
/// reads it: no mistake in these lines locks anybody out.
package struct HelpdeskSettings: Equatable, Sendable {
  /// A line as it is meant, with its number.
  package struct Line: Equatable, Sendable {
    package let words: [[UInt8]]
    package let number: Int
  }

  /// Those of its keys that are known.
  package static var keys: [StaticString] {
    ["helpdesk", "helpdesk_may", "helpdesk_for", "helpdesk_never"]
  }

  /// The lines by the numbers of their keys.
  private var lines: [Line?] = [nil, nil, nil, nil]
  /// What may be done for others.
  package private(set) var may = HelpVerb.usual
  /// Each mistake. Nobody is helped while there is one.
  package private(set) var problems: [SettingsError] = []

  /// The group whose members help others; nil: there is none.
  package var group: Line? { lines[0] }
  /// The line of `helpdesk_may`.
  package var mayLine: Line? { lines[1] }
  /// Those whose members are helped, and those whose members are not.
  package var helped: Line? { lines[2] }
  package var never: Line? { lines[3] }

  package init() {}

  /// Lines that cannot be read are no business of this: each login complains of them.
  package init(_ text: Secret) {
    guard var scanner = try? SettingsScanner(text) else { return }
    var isInDefault = false
    while true {
      do throws(SettingsError) {
        guard let line = try scanner.next() else { break }
        switch line {
        case .section(let name): isInDefault = text.holds("default", in: name)
        case .setting(let key, let value):
          take(text, key, value, isInDefault: isInDefault, at: scanner.number)
        }
      } catch {
        continue
      }
    }
    if group == nil, let other = lines.compactMap({ $0 }).first {
      problems.append(SettingsError(line: other.number, .missing("helpdesk = GROUP beside this")))
    }
  }

  private mutating func take(
    _ text: Secret, _ key: Range<Int>, _ value: Range<Int>, isInDefault: Bool, at number: Int
  ) {
    let found = text.bytes(in: key)
    guard found.starts(with: "helpdesk".utf8) else { return }
    func complain(_ problem: SettingsError.Problem, _ found: [UInt8]) {
      problems.append(SettingsError(line: number, problem, found: found))
    }
    guard let index = Self.keys.firstIndex(where: { text.holds($0, in: key) }) else {
      return complain(.unknownKey, found)
    }
    if !isInDefault { return complain(.missing("[default] above this key"), found) }
    if lines[index] != nil { return complain(.duplicateKey, found) }
    let words = Array(sequence(state: Words(text, value)) { $0.next() })
    lines[index] = Line(words: words, number: number)
    if words.isEmpty || words.contains([]) || index == 0 && words.count > 1 {
      let wanted: StaticString = index == 0 ? "the name of one group" : "names of groups"
      return complain(
        .value(Self.keys[index], wanted: index == 1 ? Self.verbs : wanted), text.bytes(in: value))
    }
    guard index == 1 else { return }
    may = HelpVerb.allCases.filter { verb in words.contains { same(verb.name, $0) } }
    let isKnown = { (word: [UInt8]) in HelpVerb.allCases.contains { same($0.name, word) } }
    if let strange = words.first(where: { !isKnown($0) }) {
      complain(.value(Self.keys[1], wanted: Self.verbs), strange)
    }
  }

  private static var verbs: StaticString {
    "status, unlock, pass, pass-enroll and block, each once or not"
  }
}
