import Glibc
package import PAMStack
import SallyportCore
import SallyportDoctor
package import SallyportSupport

extension CommandError {
  /// A service's PAM stacks were not changed.
  static func stack(_ refusal: StackRefusal) -> CommandError {
    CommandError(.stack(refusal)) { Message(refusal, at: $0) }
  }
}

extension Message {
  package init(_ refusal: StackRefusal, at invocation: Invocation = Invocation(verb: "pam")) {
    switch refusal {
    case .notRoot(let verb):
      self.init(
        "only root can change the files of PAM", .notPermitted,
        hints: ["sudo \(invocation.typed.isEmpty ? "sallyport \(verb)" : invocation.again())"])
    case .notAService(let name):
      self.init("\"\(shown(name))\" is not a valid service name", .usage, hints: ["ls /etc/pam.d"])
    case .noSuchService(let name, let known):
      let meant = Likeness.service(name, among: known).map { ". Did you mean: \($0)" } ?? ""
      self.init(
        "there is no service \(name): no file /etc/pam.d/\(name)\(meant)", .noInput,
        hints: ["ls /etc/pam.d"])
    case .noAuthLines(let name):
      self.init("\(name) has no auth lines of its own to add ours to", .configuration)
    case .neverAuthenticates(let name):
      self.init("\(name) runs no auth phase: nobody is asked for a code", .configuration)
    case .nobodyThere(let name):
      self.init(
        "\(name) logs in without anybody there to type a code, and is left as it is",
        .configuration)
    case .oneField(let name, let finding):
      self.init(
        finding.map { "\(name) was not changed: \($0.text)" }
          ?? "\(name) has one field, and no password module that takes its part of it",
        .configuration, hints: [Message.oneFieldRecipe])
    case .onlyFactor(let name):
      self.init(
        "\(name) has no required first factor: a code alone would be enough", .configuration)
    case .enabledAlready(let name, let location):
      self.init(
        "\(location.text) already has our line, with other arguments or in another place", .exists,
        hints: ["\(sallyportCommand("pam disable", on: [name]))      first, then enable it again"])
    case .enabledElsewhere(let name, let location):
      let file = location.file.split(separator: "/").last.map(String.init) ?? ""
      self.init(
        "\(name) already asks for a code, by \(location.text)", .exists,
        hints: [
          sallyportCommand("pam disable", on: [file]) + "      for every service that includes it"
        ])
    case .notEnabled(let name):
      self.init(
        "/etc/pam.d/\(name) has no pam_sallyport.so line", .noInput,
        hints: ["sallyport pam status"])
    case .noModule(let path):
      self.init("the module is not installed: \(path) is missing", .configuration)
    case .unsafe(let name, let findings):
      self.init(
        Message.list("\(name) was not changed; the result would be broken", findings),
        .configuration)
    case .harms(let name, let other, let findings):
      self.init(
        Message.list(
          "\(name) was not changed: \(shown(other)) includes its file, and would be broken",
          findings),
        .configuration,
        hints: [
          "in /etc/pam.d/\(shown(other)) include what \(name) includes, and not \(name) itself"
        ])
    case .cannotEnroll(let name, let findings):
      self.init(
        Message.list("enroll cannot be used in \(name)", findings), .configuration,
        hints: ["sallyport pam enable \(name) --no-enroll"])
    case .cannotDemand(let name):
      self.init(
        "demand cannot be used in \(name): nobody can be asked in its account phase",
        .configuration, hints: ["sallyport pam enable \(name)"])
    case .noPasswordLine(let name):
      self.init(
        "/etc/pam.d/\(name) has no line for the password alone that could be left out",
        .configuration, hints: ["sallyport pam enable \(name) --sshd key+password+code"])
    case .moreThanPassword(let name, let modules):
      self.init(
        "the line for the password in /etc/pam.d/\(name) brings other modules too, which would be "
          + "left out with it: \(modules.map(shown).joined(separator: ", "))",
        .configuration, hints: ["sallyport pam enable \(name) --sshd key+password+code"])
    case .passwordElsewhere(let name, let services):
      self.init(
        "other services include /etc/pam.d/\(name) and have no key in place of the password: "
          + services.map(shown).joined(separator: ", "),
        .configuration, hints: ["sallyport pam enable \(name) --sshd key+password+code"])
    case .keyNotBelieved(let name):
      self.init(
        "sshd_services of the policy does not name \(name): users with a key would be refused",
        .configuration, hints: ["sallyport config check --service \(name)"])
    case .jumpCountsUs(let location):
      self.init(
        "\(location.text): its jump counts our line, and would skip another line without it",
        .configuration, hints: ["remove the lines by hand, and make the jump one shorter"])
    case .locksOutEverybody(let name, let people, let idle):
      let isIdle = people.isEmpty && !idle.isEmpty
      let are = idle.count == 1 ? "is" : "are"
      let nobody =
        isIdle
        ? "sudoers has no rule for \(listed(idle.map(shown))), who \(are) enrolled"
        : "nobody is enrolled"
      let who = people.isEmpty ? nobody : listed(people.map(shown))
      let force =
        invocation.typed.isEmpty
        ? "sallyport pam enable \(name) --force" : invocation.again("--force")
      self.init(
        "nobody could log in to \(name) after this: \(who)", .configuration,
        hints: [isIdle ? "visudo" : "sallyport enroll NAME", force])
    case .rootNotEnrolled(let name, let word):
      self.init(
        "root is not enrolled, and \(name) would ask for root's code (\(word) in sudoers)",
        .configuration, hints: ["sallyport enroll root"])
    case .changedMeanwhile(let path):
      self.init("\(path) was changed meanwhile; nothing was written", .busy)
    case .busy(let path):
      self.init("\(path) is being changed by another command", .busy)
    case .system(let path, let number):
      let status: Sysexit = number == EACCES || number == EPERM ? .notPermitted : .inputOutput
      self.init("\(path): \(errnoText(number))", status)
    }
  }

  private static let oneFieldRecipe =
    "less +/one.field /usr/share/doc/libpam-sallyport/recipes.md      Clients with one field"

  private static func list(_ heading: String, _ findings: [StackFinding]) -> String {
    let reasons = findings.map(\.text)
    return reasons.count == 1
      ? "\(heading): \(reasons[0])"
      : ([heading] + reasons.map { "  \($0)" }).joined(separator: "\n")
  }
}

private func shown(_ name: String) -> String { printable(name.utf8, limit: 64) }
