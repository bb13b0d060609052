import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `--handout`: a new file with everything that the user needs to log in. With it, the backup codes
/// are not shown on the terminal.
struct Handout {
  /// As given on the command line.
  let path: String

  /// Throws if the file exists, before the user is asked for a code.
  init(_ path: String) throws(CommandError) {
    self.path = path
    if (try? facts(of: path)) != nil { throw unwritten(EEXIST) }
  }

  /// The first is a page to print, the second text.
  static let endings = [".svg", ".txt"]

  private var isPage: Bool { path.lowercased().hasSuffix(Handout.endings[0]) }

  /// Called before the enrollment is stored: a sheet without an enrollment is harmless, but an
  /// enrollment without its sheet has lost its backup codes.
  func write(_ sheet: Sheet) throws(CommandError) {
    let text = Array((isPage ? sheet.page() : sheet.text()).utf8)
    do throws(SystemError) {
      try createFile(path, text)
    } catch {
      throw unwritten(error.number)
    }
  }

  private func unwritten(_ number: Int32) -> CommandError {
    CommandError(
      Sysexit(errno: number),
      "\(printable(path.utf8, limit: 255)): \(errnoText(number)): not enrolled, nothing changed",
      hints: number == EEXIST ? ["ls -l \(shellQuoted(path))"] : [])
  }

  /// Called if the enrollment could not be stored.
  func remove() { removeFile(path) }
}

/// The content of a handout.
struct Sheet {
  let draft: Draft
  let codes: FreshBackupCodes
  let qr: QRChoice

  var heading: String { "Second factor for \(draft.user.text) on \(draft.issuer.text)" }

  /// The otpauth URI with all its parameters.
  var uri: String { plainText(inMemory(draft.uri.text())) }

  var key: [String] {
    grouped(inMemory(Base32.encode(draft.authenticator.secret)), after: "Key to type by hand:")
  }

  var day: String? { CalendarDate(draft.authenticator.created).map { "Made \($0.dayText)." } }

  /// nil with `--qr none`.
  func matrix() -> QRMatrix? { qr == .none ? nil : draft.matrix() }

  static let scan = "Scan this with an authenticator app:"
  static let care = "Anybody who sees this sheet can make the codes. Keep it locked away."

  /// The sheet as plain text.
  func text() -> String {
    var lines = [heading, ""]
    if let matrix = matrix() {
      let code = inMemory(matrix.text(style: qr.style, quietZone: QRMatrix.usualQuietZone))
      lines += [Sheet.scan, "", plainText(code)]
    }
    lines += key + [uri, ""]
    if !codes.shown.isEmpty {
      lines += [FreshBackupCodes.heading, ""] + columns(ofBackupCodes: codes.shown) + [""]
    }
    lines += [[day, Sheet.care].compactMap { $0 }.joined(separator: " ")]
    return lines.joined(separator: "\n") + "\n"
  }
}
