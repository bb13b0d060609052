import CLinuxPAM
import Foundation
import TestSupport
import Testing

@testable import PAMStack

/// This machine's libpam on a directory of services of its own. Its modules here are pam_permit,
/// pam_deny and pam_debug, which answers what its arguments say.
final class RealLibpam {
  private let own: TemporaryDirectory
  var directory: String { own.path }

  init() throws {
    own = try TemporaryDirectory()
    // What is wrong on purpose is not for this machine's log.
    setlogmask(1 << LOG_EMERG)
  }

  /// By the C library: Foundation's ways take fifty times as long.
  func write(_ name: String, _ text: String) throws {
    try RealLibpam.write("\(directory)/\(name)", text)
  }

  static func write(_ path: String, _ text: String) throws {
    // SAFETY: the stream is ours, and open until fclose.
    let stream = unsafe try #require(fopen(path, "w"))
    unsafe fputs(text, stream)
    unsafe fclose(stream)
  }

  /// What the application gets of each phase, or of pam_start where that fails.
  func verdicts(_ service: String) -> [PAMPhase: Int] {
    ask(service, [.auth, .account, .session])
  }

  /// The same of the auth phase alone.
  func authenticate(_ service: String) -> Int? { ask(service, [.auth])[.auth] }

  private func ask(_ service: String, _ phases: [PAMPhase]) -> [PAMPhase: Int] {
    var conversation = unsafe pam_conv(conv: { _, _, _, _ in PAM_CONV_ERR }, appdata_ptr: nil)
    var handle: OpaquePointer?
    var verdicts: [PAMPhase: Int] = [:]
    // SAFETY: all strings and the conversation live until pam_end.
    unsafe withUnsafePointer(to: &conversation) { conversation in
      let start = unsafe pam_start_confdir(service, "nobody", conversation, directory, &handle)
      for phase in phases {
        let verdict = unsafe handle.map { unsafe RealLibpam.run(phase, $0) }
        verdicts[phase] = Int(verdict ?? start)
      }
      if let handle = unsafe handle { unsafe pam_end(handle, PAM_SUCCESS) }
    }
    return verdicts
  }

  private static func run(_ phase: PAMPhase, _ handle: OpaquePointer) -> Int32 {
    let silent = Int32(bitPattern: PAM_SILENT)
    // SAFETY: the handle is open.
    return switch phase {
    case .auth: unsafe pam_authenticate(handle, silent)
    case .account: unsafe pam_acct_mgmt(handle, silent)
    case .session: unsafe pam_open_session(handle, silent)
    case .password: unsafe pam_chauthtok(handle, silent)
    }
  }

  /// The same from our own reading of the same files.
  func walked(_ service: String) -> [PAMPhase: Int] {
    let files = StackFiles(
      directories: [directory], includes: "/etc/pam.d", knowsAtInclude: true,
      rules: StackDirectory().rules,
      read: { path in FileManager.default.contents(atPath: path).map { Array($0) } })
    let stack = StackParser.parse(service: service, files)
    var verdicts: [PAMPhase: Int] = [:]
    for phase in [PAMPhase.auth, .account, .session] {
      verdicts[phase] = Int(stack.verdict(phase, RealLibpam.answer).number)
    }
    return verdicts
  }

  /// As the sources of the three modules say.
  static func answer(_ entry: StackEntry) -> PAMCode {
    let events = [PAMPhase.auth: "auth", .account: "acct", .session: "open_session"]
    switch entry.module {
    case "pam_permit.so": return .success
    case "pam_deny.so": return entry.phase == .session ? .sessionError : .authenticationError
    case "pam_debug.so":
      guard let event = events[entry.phase],
        let word = entry.arguments.first(where: { $0.hasPrefix("\(event)=") })
      else { return .success }
      return PAMCode.all.first { word == "\(event)=\($0.name)" } ?? .success
    case _: return .moduleUnknown
    }
  }
}
