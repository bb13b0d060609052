import SallyportCore
import SallyportSupport
import SallyportSystem

/// Problems of the notes of users. Pure.
struct NoteFindings {
  let store: StoreFacts
  /// The `--store` for the commands that fix a finding.
  let option: String?

  var all: [Finding] {
    if let error = store.notesError {
      let message = Message(error, at: Invocation(verb: "doctor", store: option))
      return [
        .error(
          "store-notes", .store, message.text, fixes: message.hints.map { .command($0) },
          effect: .locksOut("the unenrolled"))
      ]
    }
    return store.notes.compactMap { note in
      broken(note) ?? unseen(note) ?? renamed(note) ?? forNobody(note) ?? forAnother(note)
        ?? enrolled(note)
    }
  }

  /// Only for users who are not enrolled and have an account; others are not affected.
  private func broken(_ note: NoteFacts) -> Finding? {
    guard let error = note.error else { return nil }
    let name = note.name ?? note.path
    let message = Message(error, at: Invocation(verb: "doctor", user: note.name, store: option))
    let isMet = note.name.map { note.hasAccount != false && !store.enrolled.contains($0) } ?? false
    let reason = message.text.replacing(note.path, with: "\(store.path)/unenrolled/*")
    let fixes = message.hints.filter { $0.hasPrefix("chmod ") || $0.hasPrefix("chown ") }
    return Finding(
      "people-note", .people, "the level of \(shown(name)) cannot be read: \(message.text)",
      severity: isMet ? .error : .warning,
      fixes: fixes.map { .command($0) } + [
        .advice(parts: [
          "rm \(shellQuoted(note.path)),", "then run sallyport require or exempt again",
        ])
      ], effect: isMet ? .locksOut(shown(name)) : nil,
      ofUser: Finding.OfUser(
        name: shown(name), before: "the levels of ", after: "cannot be read (\(reason))"))
  }

  private func enrolled(_ note: NoteFacts) -> Finding? {
    guard note.level.isExempt, let name = note.name, store.enrolled.contains(name) else {
      return nil
    }
    return .ok(
      "note-enrolled", .people, "\(shown(name)) is exempt but enrolled, so logins ask for a code",
      fixes: [
        .advice(parts: [
          "sallyport unenroll \(shellQuoted(name)),", "to be asked for no code",
        ])
      ])
  }

  /// Somebody else has the name now, or the version before has written the note.
  private func forAnother(_ note: NoteFacts) -> Finding? {
    guard note.level.isExempt, let name = note.name, let found = note.accountUID,
      found != note.uid
    else { return nil }
    let exempt = Invocation(verb: "exempt", user: name, store: option)
    let (why, fix) =
      switch note.uid {
      case nil:
        (
          "the note has no uid yet; if this is still the right account, prepare adds it",
          Invocation(verb: "prepare", store: option).command("prepare")
        )
      case UserNote.noUID:
        ("there was no such account when the note got its uid", exempt.command("exempt"))
      case let uid?:
        ("it was set for uid \(uid), and the account has uid \(found)", exempt.command("exempt"))
      }
    return .warning(
      "note-other-uid", .people,
      "\(shown(name)) is exempt by name, but this has no effect: \(why)",
      fixes: [.command(fix), .command(exempt.command("exempt", "--undo"))])
  }

  /// Deleted, or a source of accounts is away: then a note that is removed is missing later.
  private func unseen(_ note: NoteFacts) -> Finding? {
    guard note.hasAccount == nil, note.level.isExempt, let name = note.name else { return nil }
    let uid = note.uid.flatMap { $0 == UserNote.noUID ? nil : $0 }
    let whose = shown(name) + (uid.map { " (uid \($0))" } ?? "")
    let heir =
      uid == nil
      ? "the note has no uid and lets nobody in"
      : "a new account with this name and uid would be exempt too"
    return .unseen(
      "note-unseen", .people,
      "\(whose) is exempt and is not found: deleted, or a source of accounts in "
        + "nsswitch.conf is away; \(heir)",
      fixes: [.advice(parts: [lookup(of: name, in: "passwd")])],
      ofUser: Finding.OfUser(
        name: shown(name), before: "",
        after: "are exempt and are not found: deleted, or a source of accounts is away"))
  }

  /// Another name has the uid, and has to enroll by this note alone: undone, it ends that too.
  private func renamed(_ note: NoteFacts) -> Finding? {
    guard case .required(let from) = note.level, let name = note.name, let holder = note.holder,
      !store.notes.contains(where: {
        if case .required = $0.level { $0.name == holder } else { false }
      })
    else { return nil }
    let day = from.flatMap { CalendarDate($0, inUTC: true)?.isoDay }
    let require = Invocation(verb: "require", user: holder, store: option)
      .command("require", day.map { "--by \($0)" } ?? "")
    let undo = Invocation(verb: "require", user: name, store: option).command("require", "--undo")
    return .warning(
      "note-renamed", .people,
      "\(shown(name)) has to enroll, but there is no such account; \(shown(holder)) has its uid, "
        + "so \(shown(holder)) has to enroll", fixes: [.command("\(require) && \(undo)")],
      ofUser: Finding.OfUser(
        name: shown(name), before: "",
        after: "have to enroll, but have no account; others have their uids, and have to enroll")
    )
  }

  /// A new account with this name would get the level that was set for somebody else.
  private func forNobody(_ note: NoteFacts) -> Finding? {
    guard note.hasAccount == false, let name = note.name, let level = note.level else { return nil }
    let (what, verb, plural, heir) =
      switch level {
      case .exempt:
        (
          "may log in without an enrollment", "exempt", "may log in unenrolled",
          "a new one with this name and uid"
        )
      case .required:
        ("has to enroll", "require", "have to enroll", "a new one with this name or uid")
      }
    let undo = Invocation(verb: verb, user: name, store: option)
      .command(verb, "--undo")
    return .warning(
      "note-no-account", .people,
      "\(shown(name)) \(what), but there is no such account; this would also hold for \(heir)",
      fixes: [.command(undo)],
      ofUser: Finding.OfUser(
        name: shown(name), before: "",
        after: "\(plural), but have no account (this would also hold for \(heir))"))
  }

  private func shown(_ name: String) -> String { printable(name.utf8, limit: 255) }
}
