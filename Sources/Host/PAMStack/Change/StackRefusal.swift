import Glibc
package import SallyportSupport

/// Why our lines were not added to a service's file, or not removed; made where it is thrown.
package struct StackRefusal: Error, Equatable {
  /// What some callers handle.
  package enum Cause: Equatable {
    case noSuchService, notEnabled
    /// The service's own file has our line already.
    case enabledAlready
    /// A file that the service includes has our line already.
    case enabledElsewhere(FileLocation)
    case other
  }

  package let cause: Cause
  package let message: Message

  init(_ status: Sysexit, _ text: String, cause: Cause = .other, hints: [String] = []) {
    (self.cause, message) = (cause, Message(text, status, hints: hints))
  }
}

// MARK: - What several throw

extension StackRefusal {
  /// No file in /etc/pam.d or in the vendor's directories. `known` are the services that have one.
  package static func noSuchService(_ name: String, known: [String]) -> StackRefusal {
    let meant = Likeness.service(name, among: known).map { ". Did you mean: \($0)" } ?? ""
    return StackRefusal(
      .noInput, "there is no service \(name): no file /etc/pam.d/\(name)\(meant)",
      cause: .noSuchService, hints: ["ls /etc/pam.d"])
  }

  static func enabledElsewhere(_ name: String, _ location: FileLocation) -> StackRefusal {
    let file = location.file.split(separator: "/").last.map(String.init) ?? ""
    return StackRefusal(
      .exists, "\(name) already asks for a code, by \(location.text)",
      cause: .enabledElsewhere(location),
      hints: [
        sallyportCommand("pam disable", on: [file]) + "      for every service that includes it"
      ])
  }

  /// The findings in the stack as it is, or as it would be.
  static func unsafe(_ name: String, _ findings: [StackFinding]) -> StackRefusal {
    StackRefusal(
      .configuration, list("\(name) was not changed; the result would be broken", findings))
  }

  /// `--enroll` is not possible, because of these findings.
  static func cannotEnroll(_ name: String, _ findings: [StackFinding]) -> StackRefusal {
    StackRefusal(
      .configuration, list("enroll cannot be used in \(name)", findings),
      hints: ["sallyport pam enable \(name) --no-enroll"])
  }

  static func list(_ heading: String, _ findings: [StackFinding]) -> String {
    let reasons = findings.map(\.text)
    return reasons.count == 1
      ? "\(heading): \(reasons[0])"
      : ([heading] + reasons.map { "  \($0)" }).joined(separator: "\n")
  }

  /// The line for the password also brings in these modules, which would be disabled with it.
  static func moreThanPassword(_ name: String, modules: [String]) -> StackRefusal {
    withPassword(
      "the line for the password in /etc/pam.d/\(name) brings other modules too, which would be "
        + "left out with it: \(modules.map { shown($0) }.joined(separator: ", "))", name)
  }

  /// With `after-key`, these services, which include the file, would refuse everybody.
  static func passwordElsewhere(_ name: String, services: [String]) -> StackRefusal {
    withPassword(
      "other services include /etc/pam.d/\(name) and have no key in place of the password: "
        + services.map { shown($0) }.joined(separator: ", "), name)
  }

  /// The password cannot be left out.
  static func withPassword(_ text: String, _ name: String) -> StackRefusal {
    StackRefusal(
      .configuration, text, hints: ["sallyport pam enable \(name) --sshd key+password+code"])
  }

  /// Another program changed the file meanwhile.
  package static func changedMeanwhile(path: String) -> StackRefusal {
    StackRefusal(.busy, "\(path) was changed meanwhile; nothing was written")
  }

  package static func busy(path: String) -> StackRefusal {
    StackRefusal(.busy, "\(path) is being changed by another command")
  }

  package static func system(path: String, errno number: Int32) -> StackRefusal {
    let isDenied = number == EACCES || number == EPERM
    return StackRefusal(isDenied ? .notPermitted : .inputOutput, "\(path): \(errnoText(number))")
  }
}
