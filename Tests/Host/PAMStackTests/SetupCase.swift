import Foundation
import TestSupport
import Testing

/// A case of Tests/Vectors/setup-cases.txt.
struct SetupCase: CustomTestStringConvertible {
  let name: String
  var distribution = "debian"
  var service = "sshd"
  var files: [String: [String]] = [:]
  /// sshd_config.
  var settings: [String] { files["sshd_config"] ?? [] }
  var findings: [String] = []
  var lockedOut: [String] = []
  var letIn: [String] = []
  /// The service's file is as `sallyport pam enable` writes it.
  var isEnabled = false
  var testDescription: String { name }
  var isDebian: Bool { SetupCase.isDebian(distribution) }

  /// Its libpam knows `@include`.
  static func isDebian(_ distribution: String) -> Bool {
    ["debian", "ubuntu", "ubuntu-sss"].contains(distribution)
  }

  static func read(_ name: String) -> [String] {
    (try? vectorLines(name)) ?? []
  }

  /// {distribution: {file: lines}}
  static let distributions: [String: [String: [String]]] = {
    var all: [String: [String: [String]]] = [:]
    var (distribution, file) = ("", "")
    for line in read("setups.txt") {
      if line.hasPrefix("== ") {
        distribution = String(line.dropFirst(3))
      } else if line.hasPrefix("-- ") {
        file = String(line.dropFirst(3))
        all[distribution, default: [:]][file] = []
      } else {
        all[distribution, default: [:]][file, default: []].append(line)
      }
    }
    return all
  }()

  /// Those that some distribution has, and a few of the mistakes.
  static let modules: Set<String> = {
    let known = ["sallyport", "google_authenticator", "wheel"].map { "pam_\($0).so" }
    let words = distributions.values.flatMap(\.values).joined().flatMap { $0.split(separator: " ") }
    return Set(known + words.map(String.init).filter { $0.hasSuffix(".so") })
  }()

  static let all: [SetupCase] = {
    var cases: [[String]] = []
    for line in read("setup-cases.txt") {
      if line.hasPrefix("* ") { cases.append([]) }
      cases[cases.count - 1].append(line)
    }
    return cases.map { SetupCase($0) }
  }()

  private init(_ lines: [String]) {
    name = String(lines[0].dropFirst(2))
    func said(_ word: String) -> [String] {
      lines.filter { $0.hasPrefix("\(word) ") }.map { String($0.dropFirst(word.count + 1)) }
    }
    distribution = said("on").first ?? distribution
    service = said("service").first ?? service
    findings = (said("finds").first ?? "").components(separatedBy: ", ").filter { !$0.isEmpty }
    lockedOut = said("out")
    isEnabled = lines.contains("enabled")
    letIn = said("in").filter { !SetupCase.isEdit($0) }
    files = SetupCase.distributions[distribution] ?? [:]
    var edit: (file: String, index: Int)?
    for line in lines {
      if line.hasPrefix("+ "), let (file, index) = edit {
        files[file]?.insert(String(line.dropFirst(2)), at: index)
        edit = (file, index + 1)
      } else if line.hasPrefix("ssh ") {
        edit = ("sshd_config", line == "ssh first" ? 0 : settings.count)
      } else if line.hasPrefix("in "), SetupCase.isEdit(String(line.dropFirst(3))) {
        edit = place(line.split(separator: " ").map(String.init))
      }
    }
  }

  private static func isEdit(_ text: String) -> Bool {
    let words = text.split(separator: " ")
    return words.count > 2 && ["after", "before", "drop"].contains(words[1])
  }

  /// `in FILE HOW START`: where lines go; a dropped line is gone.
  private mutating func place(_ words: [String]) -> (String, Int)? {
    let start = words.dropFirst(3).joined(separator: " ")
    guard let index = files[words[1]]?.firstIndex(where: { $0.hasPrefix(start) }) else {
      Issue.record("\(name): no line \(start) in \(words[1])")
      return nil
    }
    if words[2] == "drop" { files[words[1]]?.remove(at: index) }
    return (words[1], words[2] == "after" ? index + 1 : index)
  }
}
