import SallyportCore
import SallyportSupport

/// Enrollments under a name that no account has as its own, and whose uid another one has. Pure.
struct RenamedFindings {
  let store: StoreFacts
  /// The `--store` for the commands that fix a finding.
  let option: String?
  private let area = Area.store

  private struct Renamed {
    let name: String
    let holder: String
    let uid: UInt32
    /// Whether the two are one name, with and without its domain.
    let isSame: Bool
  }

  var all: [Finding] {
    let renamed = store.users.compactMap { user -> Renamed? in
      guard let name = user.name, let holder = user.holder else { return nil }
      return Renamed(
        name: name, holder: holder.name, uid: holder.uid,
        isSame: RenamedFindings.isSame(name, holder.name))
    }
    return [changedForms(renamed.filter(\.isSame))].compactMap { $0 }
      + renamed.filter { !$0.isSame }.map { one in
        finding(of: one, isAlone: renamed.count { $0.uid == one.uid } == 1)
      }
  }

  /// Whether SSSD has one name for the other, with `use_fully_qualified_names` or without.
  static func isSame(_ name: String, _ other: String) -> Bool {
    bare(name) == other || name == bare(other)
  }

  /// `alice`, of `alice@example.com` or `EXAMPLE\alice`; nil if it has no domain.
  private static func bare(_ name: String) -> String? {
    if let domain = name.firstIndex(of: "\\") { return String(name[domain...].dropFirst()) }
    return name.lastIndex(of: "@").map { String(name[..<$0]) }
  }

  /// The name and the uid say that it is the same person; adopt asks all the same.
  private func changedForms(_ people: [Renamed]) -> Finding? {
    guard let first = people.first else { return nil }
    let who = listed(people.map(\.name), 2)
    let accounts = listed(people.map(\.holder), 2)
    return .error(
      "user-name-form", area,
      people.count > 1
        ? "\(who) are enrolled, and the accounts are \(accounts) now: names got or lost a domain"
        : "\(who) is enrolled, and the account is \(accounts) now: the name got or lost a domain",
      fixes: [people.count > 1 ? adoption(of: people) : adoption(of: first)],
      effect: .locksOut(who))
  }

  private func adoption(of one: Renamed) -> Fix { .command(adoptionText(of: one)) }

  private func adoptionText(of one: Renamed) -> String {
    Invocation(verb: "adopt", user: one.holder, store: option)
      .command("adopt", "--from \(shellQuoted(one.name))")
  }

  private func adoption(of people: [Renamed]) -> Fix {
    let lines = people.map { shellQuoted("\($0.holder):\($0.name):\($0.uid)") }
    let adopt = Invocation(verb: "adopt", user: nil, store: option).command("adopt", "--all people")
    return .command("printf '%s\\n' \(lines.joined(separator: " ")) >people && \(adopt)")
  }

  /// The uid alone joins them, and uids are given again. `isAlone`: it joins no others.
  private func finding(of one: Renamed, isAlone: Bool) -> Finding {
    .warning(
      "user-renamed", area,
      "\(one.name) is enrolled (uid \(one.uid)) and is not found; uid \(one.uid) is \(one.holder): "
        + "\(one.name) was renamed, or \(one.holder) is a new person with the same uid",
      fixes: [
        .advice(
          parts: isAlone
            ? ["ask who it is; if it is the same person:", adoptionText(of: one)]
            : ["ask who it is; sallyport(1), adopt and unenroll"])
      ],
      ofUser: Finding.OfUser(
        name: one.name, before: "",
        after: "are enrolled and are not found, and others have their uids: renamed, or new people")
    )
  }
}
