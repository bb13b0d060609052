import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSystem

extension Context {
  /// What a change of files does to who gets in; nil if the caller may not read the store.
  func accessChange(
    _ options: StoreOptions, _ assuming: (AccessFacts) -> AccessFacts
  ) throws(CommandError) -> AccessChange? {
    try orNilUnlessRoot { () throws(CommandError) in
      let facts = try accessFacts(options)
      return accessChange(facts, to: assuming(facts))
    }
  }

  /// What the table of who gets in is made of. `user`: the only one that it is to tell of; nil:
  /// everybody.
  func accessFacts(_ options: StoreOptions, user: UserName? = nil) throws(CommandError)
    -> AccessFacts
  {
    var facts = AccessFacts(of: machine, try store(options), at: try time(), about: user)
    facts.ask(roster.map { ask in { names in ask(user.map { [$0] } ?? names) } })
    return facts
  }

  func accessChange(_ facts: AccessFacts, to changed: AccessFacts) -> AccessChange {
    var changed = changed
    changed.ask(roster)
    return AccessChange(from: facts, to: changed)
  }

  /// What asks the fleet about people; nil if this command is built without it.
  var roster: (([UserName]) -> FleetRoster)? { fleet.map { fleet in { fleet.roster(of: $0) } } }
}

/// What `step` returns; nil if the caller may not use the store.
func orNilUnlessRoot<Value>(_ step: () throws(CommandError) -> Value) throws(CommandError)
  -> Value?
{
  do throws(CommandError) {
    return try step()
  } catch {
    if case .notRoot = error.cause { return nil }
    throw error
  }
}

extension AccessChange {
  /// Shows all that changes, as before a question. Where none is asked, it warns of the accounts
  /// that are shut out, and no more.
  func tell(_ output: Output, isAsked: Bool) {
    if !isAsked {
      for group in groups where group.shutsOut { output.warn(group.loss) }
    } else if !groups.isEmpty {
      output.say("What changes:")
      for line in groups.flatMap({ $0.lines(width: output.width) }) { output.say(line) }
    }
  }
}

extension AccessChange.Group {
  private static let column = 19

  fileprivate var loss: String {
    let one = users.count == 1
    return "\(listed(users, 5)) no longer \(one ? "gets" : "get") in at "
      + "\(ways.joined(separator: ", ")): \(after.words)"
  }

  fileprivate func lines(width: Int) -> [String] {
    let margin = String(repeating: " ", count: Self.column + 2)
    let who = "\(listed(users, 5)) at \(ways.joined(separator: ", "))"
    let reason = [after.words, location.map(\.text) ?? ""].filter { !$0.isEmpty }
    let was = "before: \(before.heading)" + (before.words.isEmpty ? "" : ", \(before.words)")
    let detail = (after.isAsked ? [] : reason) + [was]
    let lines =
      folded(who, width - margin.count)
      + folded(detail.joined(separator: "; "), width - margin.count - 2).map { "  \($0)" }
    return lines.enumerated().map { index, line in
      (index == 0 ? padded("  \(after.heading)", Self.column + 2) : margin) + line
    }
  }
}

extension Verdict {
  fileprivate var heading: String { Heading(self, isMeant: false).text }
}

/// A text in lines of at most `width` columns, unless a single word is longer.
func folded(_ text: String, _ width: Int) -> [String] {
  folded(text.split(separator: " ").map(String.init), width)
}

/// As above; no part is broken.
func folded(_ parts: [String], _ width: Int) -> [String] {
  parts.reduce(into: [""]) { lines, word in
    let last = lines[lines.count - 1]
    if last.isEmpty {
      lines[lines.count - 1] = word
    } else if last.unicodeScalars.count + word.unicodeScalars.count < width {
      lines[lines.count - 1] = "\(last) \(word)"
    } else {
      lines.append(word)
    }
  }
}
