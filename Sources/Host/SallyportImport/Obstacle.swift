import Glibc
package import SallyportCore
package import SallyportSupport
package import SallyportSystem

/// Why a user was not imported, or a list; made where it is found. Never a byte of a secret.
package struct Obstacle: Error {
  /// The word for JSON.
  package let code: String
  package let text: String
  /// The next commands.
  package let fixes: @Sendable (Invocation) -> [String]
  /// Why a file cannot be read.
  package var errno: Int32?

  package init(
    _ code: String, _ text: String,
    fixes: @escaping @Sendable (Invocation) -> [String] = { _ in [] }
  ) {
    (self.code, self.text, self.fixes) = (code, text, fixes)
  }

  /// For a user who needs another secret.
  package init(_ code: String, _ text: String, enroll remark: String) {
    self.init(code, text) { [$0.command("enroll", remark: remark)] }
  }

  /// Whether the file does not exist, so that there is nothing to import.
  package var isAbsence: Bool { errno == ENOENT || errno == ENOTDIR }

  /// A fault in a line of the list, or of the user's file.
  package static func line(_ error: LineProblem) -> Obstacle {
    let text = "line \(error.line): \(error.problem.text)"
    return error.problem.needsNewSecret
      ? Obstacle("line", text, enroll: "makes a new secret") : Obstacle("line", text)
  }

  /// A fault in an entry of an app's export, counted from 1.
  package static func entry(_ number: Int, _ problem: SourceProblem) -> Obstacle {
    Obstacle("entry", "entry \(number): \(problem.text)")
  }

  /// Of several entries of an export nobody said which are meant: most are of other places.
  package static func several(_ entries: [(number: Int, name: Label?)]) -> Obstacle {
    Obstacle("several-entries", "\(entries.count) entries: choose, or take --all") { invocation in
      entries.map { invocation.choosing($0, $1) }
    }
  }

  /// More entries than one user can have.
  package static func tooMany(_ count: Int, most: Int, _ entries: [(number: Int, name: Label?)])
    -> Obstacle
  {
    let text = "\(count) authenticators, the maximum is \(most)"
    return Obstacle("too-many-authenticators", text) { invocation in
      entries.map { invocation.choosing($0, $1) }
    }
  }

  /// Two entries that give the same codes, or their last digits.
  package static func sameSecret(
    _ one: Label, _ other: Label, _ entries: [(number: Int, name: Label?)]
  ) -> Obstacle {
    let text = "\(other.text) has the secret of \(one.text): each code would be accepted twice"
    return Obstacle("same-secret", text) { invocation in
      entries.map { invocation.choosing($0, $1) }
    }
  }

  /// Of an export all was left out, as the remarks say.
  package static func nothingOfUse(_ remarks: [Remark]) -> Obstacle {
    Obstacle("nothing-of-use", remarks.map(\.text).joined(separator: "; "))
  }

  /// Pictures of Google Authenticator's export, counted from 1.
  package static func missing(_ parts: [Int], of all: Int) -> Obstacle {
    let pictures = parts.map { "\($0)" }.joined(separator: ", ")
    return Obstacle(
      "part-missing",
      "of the \(all) pictures that Google Authenticator showed, number \(pictures) is missing: "
        + "add its otpauth-migration line")
  }

  package static func store(_ trouble: StoreTrouble) -> Obstacle {
    Obstacle("store", Message(trouble, at: Invocation(verb: "import")).text) {
      Message(trouble, at: $0).hints
    }
  }

  // MARK: files

  /// A file that is not read. `longest`: how many bytes of it are.
  package init(_ path: String, _ error: SystemError, longest: Int) {
    let quoted = shellQuoted(path)
    switch error {
    case SystemError(ELOOP):
      self.init("symbolic-link", "the file is a symbolic link") { _ in
        ["readlink -f \(quoted)  # that file can be imported by its name"]
      }
    case .notRegular: self.init("not-regular", "not a regular file") { _ in ["ls -ld \(quoted)"] }
    case .tooLong: self.init("too-long", "the file is longer than \(longest / 1024) KiB")
    case _:
      self.init("cannot-read", errnoText(error.number)) { _ in ["ls -ld \(quoted)"] }
      errno = error.number
    }
  }

  static func owner(_ owner: UInt32, wanted: UInt32, _ path: String) -> Obstacle {
    Obstacle("owner", "the file is owned by uid \(owner), must be uid \(wanted)") { _ in
      ["ls -ld \(shellQuoted(path))"]
    }
  }

  /// Other users may read or write it; with the permission bits.
  static func openToOthers(mode: UInt32, _ path: String) -> Obstacle {
    let rights = mode & 0o044 != 0 ? "readable" : "accessible"
    return Obstacle(
      "open-to-others", "the file is \(rights) by others (mode 0\(String(mode & 0o777, radix: 8)))"
    ) { _ in ["chmod 600 \(shellQuoted(path))"] }
  }
}

extension Invocation {
  /// The command that was typed, for this entry of the file.
  fileprivate func choosing(_ entry: Int, _ name: Label?) -> String {
    var chosen = self
    chosen.typed.removeAll { $0 == "--all" }
    return chosen.again(["--entry", "\(entry)"], remark: name?.text ?? "")
  }
}
