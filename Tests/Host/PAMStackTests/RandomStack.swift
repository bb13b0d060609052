import TestSupport

@testable import PAMStack

/// Files of pam.d by chance, mostly as people write them, from a seed that can be repeated.
struct RandomStack {
  private var random: Seeded
  /// Of the files that lines may include.
  let directory: String
  let included = ["one", "two", "three"]
  private var mayFailAtInclude = true

  init(seed: UInt64, directory: String) {
    (random, self.directory) = (Seeded(seed &* 2 &+ 1), directory)
  }

  private mutating func below(_ bound: Int) -> Int { random.below(bound) }
  private mutating func one<T>(of choices: [T]) -> T { random.one(of: choices) }
  private mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// The service's own file, `other` and what they include. Later files are included by earlier
  /// ones, so that all ends.
  mutating func files() -> [(name: String, text: String)] {
    var files = [("service", text(includes: included))]
    // Where only lines of one type are wanted, an `@include` that fails takes its actions from
    // memory that nobody has set.
    mayFailAtInclude = false
    files.append(("other", text(includes: [])))
    for index in included.indices {
      files.append((included[index], text(includes: Array(included[(index + 1)...]))))
    }
    return files
  }

  private mutating func text(includes: [String]) -> String {
    (0..<below(9)).map { _ in line(includes) + "\n" }.joined()
  }

  private mutating func line(_ includes: [String]) -> String {
    if chance(4) {
      return one(of: ["# a comment", "", "   ", "#", "auth required pam_permit.so #x"])
    }
    if chance(3) { return broken() }
    let type = one(of: ["auth", "auth", "auth", "account", "session", "-auth", "Auth", "password"])
    if chance(18), !includes.isEmpty {
      let target = "\(directory)/\(one(of: includes))"
      if chance(25) { return "@include \(target)" }
      return "\(type) \(one(of: ["include", "substack", "substack"])) \(target)"
    }
    let blank = one(of: [" ", "\t", "  ", " \\\n", " \\\n # between\n ", " \\\n\n "])
    return "\(type)\(blank)\(control()) \(module())"
  }

  private mutating func control() -> String {
    if chance(40) {
      return one(of: ["required", "requisite", "sufficient", "optional", "Required"])
    }
    let pairs = (0...below(4)).map { _ in "\(value())=\(action())" }
    return "[\(pairs.joined(separator: one(of: [" ", "  ", ""])))]"
  }

  private mutating func value() -> String {
    chance(60)
      ? one(of: ["success", "default", "ignore", "auth_err", "new_authtok_reqd", "module_unknown"])
      : PAMCode.names[below(31)]
  }

  private mutating func action() -> String {
    chance(3)
      ? one(of: ["0", "okay", "no", "4294967295", "4294967297", "-1", ""])
      : one(of: ["ok", "done", "bad", "die", "reset", "ignore", "1", "1", "2", "3", "12"])
  }

  private mutating func module() -> String {
    if chance(4) { return one(of: ["pam_not_there.so", "", "pam_permit.so\r", "[pam_permit.so]"]) }
    if chance(20) { return one(of: ["pam_permit.so", "pam_deny.so"]) }
    let code =
      chance(70)
      ? one(of: ["success", "auth_err", "ignore", "new_authtok_reqd"]) : PAMCode.names[below(31)]
    return "pam_debug.so [x\\]y] auth=\(code) acct=\(code) open_session=\(code)"
  }

  private mutating func broken() -> String {
    if mayFailAtInclude, chance(8) { return "@include \(directory)/missing" }
    return one(of: [
      "auth", "auth required", "bogus required pam_permit.so", "bogus sufficient pam_deny.so",
      "auth requird pam_permit.so", "auth [success=ok default pam_permit.so", "- required x",
      "auth include \(directory)/missing", "account substack \(directory)/missing",
      "[] [required] pam_permit.so",
      "auth \\", "auth required pam_permit.so \(String(repeating: "x ", count: 600))",
      "#\(String(repeating: "-", count: 1022))auth required pam_deny.so",
    ])
  }

  /// Lines of an auth stack with modules by name, each with a word of its own; many end as
  /// Debian's do.
  mutating func auth() -> [String] {
    let lines = (0..<1 + below(4)).map { _ in
      let module = one(of: RandomStack.modules)
      return "auth \(one(of: RandomStack.controls)) \(module)"
    }
    let isClosed = chance(60)
    let end = isClosed ? ["auth requisite pam_deny.so", "auth required pam_permit.so"] : []
    return (lines + end).enumerated().map { "\($1) n=\($0)" }
  }

  private static let controls = [
    "required", "requisite", "sufficient", "optional", "[success=1 default=ignore]",
    "[success=2 default=ignore]", "[success=2 default=die]", "[success=1 default=bad]",
    "[success=ok ignore=ignore default=die]", "[success=ignore default=1]",
  ]
  private static let modules = [
    "pam_unix.so", "pam_unix.so", "pam_sss.so", "pam_ldap.so minimum_uid=1000", "pam_fprintd.so",
    "pam_u2f.so nouserok", "pam_google_authenticator.so nullok", "pam_securid.so", "pam_corp.so",
    "pam_rootok.so", "pam_localuser.so", "pam_permit.so", "pam_deny.so",
  ]
}
