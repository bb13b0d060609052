import Foundation
import TestSupport
import Testing

@testable import PAMStack

/// The files of PAM of a machine, in a directory.
class PamFiles {
  private let directory: TemporaryDirectory
  var root: String { directory.path }

  init(_ files: [String: String] = Stacks.debian, debian: Bool = true) throws {
    directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      atPath: "\(root)/etc/pam.d", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: "\(root)/usr/lib/pam.d", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: "\(root)/run", withIntermediateDirectories: true)
    for (name, text) in files { try write("/etc/pam.d/\(name)", text + "\n") }
    if debian { try write("/etc/debian_version", "12.5\n") }
  }

  func write(_ path: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: root + path))
  }

  func read(_ path: String) -> String? {
    FileManager.default.contents(atPath: root + path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Everything in the directory of services with its mode.
  func content() throws -> [String: String] {
    let directory = "\(root)/etc/pam.d"
    var content: [String: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
      let facts = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
      let mode = (facts[.posixPermissions] as? Int).map { String($0, radix: 8) } ?? ""
      content[name] = "\(mode) \(read("/etc/pam.d/\(name)") ?? "")"
    }
    return content
  }

  /// What a distribution of Tests/Vectors/setups.txt ships.
  func lay(_ distribution: String) throws {
    for (name, lines) in SetupCase.distributions[distribution] ?? [:]
    where name != "sshd_config" {
      try write("/etc/pam.d/\(name)", lines.joined(separator: "\n") + "\n")
    }
  }

  func layGate() throws {
    try FileManager.default.createDirectory(
      atPath: "\(root)/etc/security", withIntermediateDirectories: true)
    try write(StackGate.path, try textOfSources("pam/gate"))
    try write(StackGate.innerPath, try textOfSources("pam/gate-inner"))
  }

  func stack(_ service: String) -> ServiceStack {
    StackParser.parse(service: service, StackDirectory(root: root).files)
  }

  func analysis(_ service: String) -> StackAnalysis { StackAnalysis(stack(service)) }
}
