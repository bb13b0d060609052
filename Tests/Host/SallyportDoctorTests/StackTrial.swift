import Foundation
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// Stacks by chance: what `pam enable` makes of them and what doctor says of them, beside what the
/// libpam of this machine does with them. pam_debug stands in for every module under its name, and
/// answers as it is told.
///
/// A login is what every line but ours answers. What is checked, `rule` by rule:
///
/// - A stack that `pam enable` wrote, beside the one that it was written for, both in the same
///   login. `admitsMore`: the old one refuses it, and the new one lets in, whatever our line says.
///   `admitsLess`: the old one lets in, and the new one refuses with a right code. Nothing else
///   counts here: where the old one let in without a password, so may the new one.
/// - Every stack with a line of ours, written or by hand, in logins of others than root.
///   `withoutCode`: it lets in though our line refuses, or is not called, and doctor names no way
///   around the line. `withoutPassword`: it lets in with our line called and content, nothing that
///   checks a password or another factor said yes, and doctor does not say that the code is all
///   that has to be right. If a module that is not known said anything but no, it is enough that
///   doctor names such a one: it may have checked a password. Whether our line is called is
///   libpam's word too: PAM_INCOMPLETE from it ends the phase.
///
/// Not checked: whether what doctor says too much is true, and lines that take a password which
/// nobody asked for (use_first_pass).
final class StackTrial {
  enum Rule: CaseIterable { case admitsMore, admitsLess, withoutCode, withoutPassword }

  struct Violation: CustomStringConvertible {
    let rule: Rule
    let stack: Int
    let description: String
  }

  struct Numbers: CustomStringConvertible {
    var (stacks, logins, written, refused) = (0, 0, 0, 0)
    /// Lines of ours of which doctor says that they hold in every login.
    var sound = 0
    /// In stacks that were written: logins that both let in, with a right code.
    var admitted = 0
    /// Told of: logins without a code, without a password.
    var (withoutCode, withoutPassword) = (0, 0)
    var violations: [Violation] = []

    var description: String {
      let found = Rule.allCases.map { rule in "\(rule) \(violations.count { $0.rule == rule })" }
      return """
        \(stacks) stacks, \(logins) logins by libpam
          pam enable: \(written) written, \(refused) refused; \(admitted) logins let in as before
          with our line: \(stacks + written), of which doctor calls \(sound) sound
          told of: \(withoutCode) logins without a code, \(withoutPassword) without a password
          violations: \(found.joined(separator: ", "))
        """
    }
  }

  private let planted: PlantedFault?
  private let libpam: RealLibpam
  private let machine = FakeMachine()
  private let modules: String
  private(set) var numbers = Numbers()

  init(_ planted: PlantedFault? = nil) throws {
    self.planted = planted
    libpam = try RealLibpam()
    modules = libpam.directory + "/modules"
    try FileManager.default.createDirectory(atPath: modules, withIntermediateDirectories: true)
    let real = try #require(StackDirectory().modules) + "/pam_debug.so"
    for name in ChanceStack.names {
      try FileManager.default.createSymbolicLink(
        atPath: "\(modules)/\(name)", withDestinationPath: real)
    }
    try machine.write("/etc/debian_version", "12.8\n")
    try machine.write("/etc/pam.d/other", "auth required pam_deny.so\n")
  }

  /// Of one stack what it is by its seed; `logins`: how many for each question.
  func play(_ seed: UInt64, logins: Int = 12) throws {
    numbers.stacks += 1
    var stack = ChanceStack(seed: seed)
    let old = stack.files()
    try put(old)
    if let service = written(old["service"] ?? "") {
      numbers.written += 1
      let new = old.merging(["service": service]) { $1 }
      try compare(old, new, &stack, logins)
      try check(new, &stack, logins)
    } else {
      numbers.refused += 1
    }
    try check(stack.files(with: stack.ours()), &stack, logins)
  }

  // MARK: pam enable

  /// nil where it is refused.
  private func written(_ old: String) -> String? {
    if let other = planted?.written(old) { return other }
    do throws(StackRefusal) {
      let planner = try StackPlanner("service", in: StackDirectory(root: machine.root))
      let bytes = try planner.enable(StackOptions()).after?.bytes
      return bytes.map { String(decoding: $0, as: UTF8.self) }
    } catch {
      return nil
    }
  }

  private func compare(
    _ old: [String: String], _ new: [String: String], _ stack: inout ChanceStack, _ logins: Int
  ) throws {
    for login in (0..<logins).map({ _ in stack.login() }) {
      let before = try admits(old, login, ours: "")
      for ours in ["success", "ignore", "auth_err"] {
        let after = try admits(new, login, ours: ours)
        if after, !before { violated(.admitsMore, new, login, ours) }
        if before, !after, ours == "success" { violated(.admitsLess, new, login, ours) }
        if before, after, ours == "success" { numbers.admitted += 1 }
      }
    }
  }

  // MARK: what doctor says

  private static let around: Set = [
    "stack-skipped", "stack-unreached", "stack-uncounted", "service-unasked", "stack-complex",
  ]

  private func told(_ files: [String: String]) throws -> Set<String> {
    try put(files)
    let stack = ServiceStack(of: machine.machine, "service")
    let found = StackFindings(ServiceFacts(stack, of: machine.machine), ssh: nil).all
    let ids = Set(found.filter { $0.severity > .warning || $0.severity == .unseen }.map(\.id))
    return ids.subtracting(planted?.untold ?? [])
  }

  private func check(_ files: [String: String], _ stack: inout ChanceStack, _ logins: Int) throws {
    let told = try told(files)
    let isAround = !told.isDisjoint(with: StackTrial.around)
    let aloneIDs: Set = ["stack-only-factor", "stack-unknown-factor"]
    if !isAround, told.isDisjoint(with: aloneIDs) { numbers.sound += 1 }
    for login in (0..<logins).map({ _ in stack.login() }) where !login.isRoot {
      if try admits(files, login, ours: "auth_err") {
        numbers.withoutCode += 1
        if !isAround { violated(.withoutCode, files, login, "auth_err") }
      }
      // With a key, the code is all that is asked for.
      let isByKey = login.hasKey && files.values.contains { $0.contains("after-key") }
      guard login.isBare, !isByKey else { continue }
      let isTold =
        told.contains("stack-only-factor") || told.contains("stack-complex")
        || login.unknownAgreed && told.contains("stack-unknown-factor")
      for ours in ["success", "ignore"] {
        guard try admits(files, login, ours: ours), try calls(files, login) else { continue }
        numbers.withoutPassword += 1
        if !isTold { violated(.withoutPassword, files, login, ours) }
      }
    }
  }

  private func violated(
    _ rule: Rule, _ files: [String: String], _ login: ChanceLogin, _ ours: String
  ) {
    let answers = login.answers.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    let stack = files.sorted { $0.key > $1.key }.map { "== \($0.key)\n\($0.value)" }
    numbers.violations.append(
      Violation(
        rule: rule, stack: numbers.stacks,
        description: "\(rule): ours=\(ours) \(answers.joined(separator: " "))\n"
          + stack.joined()))
  }

  // MARK: the two machines

  /// On the one that the command looks at.
  private func put(_ files: [String: String]) throws {
    for (name, text) in files {
      try RealLibpam.write("\(machine.root)/etc/pam.d/\(name)", text)
    }
  }

  /// Whether libpam lets in.
  private func admits(_ files: [String: String], _ login: ChanceLogin, ours: String) throws -> Bool
  {
    try answer(files, login, ours) == Int(PAMCode.success.number)
  }

  /// Whether our line is called.
  private func calls(_ files: [String: String], _ login: ChanceLogin) throws -> Bool {
    try answer(files, login, "incomplete") == Int(PAMCode.incomplete.number)
  }

  private func answer(_ files: [String: String], _ login: ChanceLogin, _ ours: String) throws -> Int
  {
    numbers.logins += 1
    for (name, text) in files {
      let real = text.split(separator: "\n").compactMap { realLine($0, login, ours) }
      try libpam.write(name, real.joined(separator: "\n") + "\n")
    }
    return try #require(libpam.authenticate("service"))
  }

  /// A line of the auth stack with this machine's paths, and its answer.
  private func realLine(_ line: Substring, _ login: ChanceLogin, _ ours: String) -> String? {
    var words = line.split(separator: " ").map { String($0) }
    guard words.first == "auth", let last = words.last else { return nil }
    if last == "inner" { return "auth \(words[1]) \(libpam.directory)/inner" }
    guard let at = words.firstIndex(where: { $0.hasSuffix(".so") }) else { return line.description }
    var answer = words[at] == "pam_sallyport.so" ? ours : login.answers[last] ?? "auth_err"
    if last == "after-key" {
      answer = login.hasKey ? (ours == "ignore" ? "success" : ours) : "perm_denied"
    }
    words[at] = "\(modules)/\(words[at]) auth=\(answer)"
    return words[...at].joined(separator: " ")
  }
}
