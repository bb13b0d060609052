import Glibc
import OneTimePassword
import SallyportCore
import SallyportFiles
import SallyportLogin
import SallyportSystem
import SallyportText

/// `--handout`: a sheet with everything that its reader needs to log in, in a new file that root
/// hands over. Where there is one, the backup codes are shown nowhere else to people.
struct Handout {
  /// As it was given.
  let path: String

  /// Throws where the file is there already, so that nobody is asked for a code in vain.
  init(_ path: String) throws(CommandError) {
    self.path = path
    if (try? facts(of: path)) != nil { throw .handout(path: path, errno: EEXIST) }
  }

  /// The first is a page to print, the second text.
  static let endings = [".svg", ".txt"]

  private var isPage: Bool { path.lowercased().hasSuffix(Handout.endings[0]) }

  /// On disk before the enrollment is: a sheet without an enrollment is only paper, an enrollment
  /// without its sheet has lost its backup codes.
  func write(_ sheet: Sheet) throws(CommandError) {
    let text = Array((isPage ? sheet.page() : sheet.text()).utf8)
    do throws(SystemError) {
      try createFile(path, text)
    } catch {
      throw .handout(path: path, errno: error.number)
    }
  }

  /// After a failure to enroll.
  func remove() { removeFile(path) }
}

/// What stands on it.
struct Sheet {
  let draft: Draft
  let codes: FreshBackupCodes
  let qr: QRChoice

  var heading: String { "Second factor for \(draft.user.text) on \(draft.issuer.text)" }

  /// The URI with all its parameters.
  var uri: String { plainText(inMemory(draft.uri.text())) }

  var key: [String] {
    grouped(inMemory(Base32.encode(draft.authenticator.secret)), after: "Key to type by hand:")
  }

  var day: String? { CalendarDate(draft.authenticator.created).map { "Made \($0.dayText)." } }

  /// nil where none is wanted.
  func matrix() -> QRMatrix? { qr == .none ? nil : draft.matrix() }

  static let scan = "Scan this with an authenticator app:"
  static let care = "Whoever sees this sheet can make the codes. Keep it locked away."

  /// As a terminal shows it.
  func text() -> String {
    var lines = [heading, ""]
    if let matrix = matrix() {
      let style: QRStyle =
        switch qr {
        case .ascii: .ascii
        case .inverted: .inverted
        case .auto, .utf8, .none: .halfBlocks
        }
      let code = inMemory(matrix.text(style: style, quietZone: QRMatrix.usualQuietZone))
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
