internal import CLinuxPAM
import OneTimePassword
import SallyportCore
package import SallyportSystem

extension LogLine {
  /// What went wrong with the machine or the store: the fact, its path, and the mend where one
  /// command mends it.
  package static func trouble(_ trouble: StoreTrouble) -> String { "trouble: " + text(of: trouble) }

  private static func text(of trouble: StoreTrouble) -> String {
    switch trouble {
    case .system(let call, let path, let number):
      text(call) + ": " + errorText(number) + ": " + path
    case .noStore(let path): "there is no store: " + path + " (sallyport enroll makes it)"
    case .unsafe(let path, let flaw): text(of: flaw) + ": " + path
    case .incomplete(let path): "the enrollment is not whole, a file is missing: " + path
    case .malformed(let path, let error): path + ":\(error.line): " + text(of: error.problem)
    case .state(let path, let problem): text(of: problem) + ": " + path
    case .foreignState(let path): "the state belongs to another enrollment: " + path
    case .otherUser(let path, let found): "the enrollment is that of " + found.text + ": " + path
    case .otherUID(let path, let recorded, let found):
      "the enrollment is that of uid \(recorded), the account has "
        + (found.map { "uid \($0)" } ?? "gone") + ": " + path
    case .busy(let path): "the lock was not to be had in time, another process holds it: " + path
    case .unsettled(let path): "the enrollment kept changing: " + path
    case .exists(let path): "exists already: " + path
    case .crypto(let error): "libcrypto: " + text(of: error)
    case .outOfMemory: "out of memory"
    }
  }

  private static func text(of flaw: StoreTrouble.Flaw) -> String {
    switch flaw {
    case .symbolicLink: "is a symbolic link"
    case .notAFolder: "is not a folder"
    case .notRegular: "is not a regular file"
    case .owner(let found, let wanted): "belongs to uid \(found), must be uid \(wanted)'s"
    case .mode(let mode): "mode " + octal(mode) + " lets others in"
    case .links(let count): "has \(count) hard links, must have one"
    case .tooLong: "is longer than 64 KiB"
    }
  }

  private static func text(of problem: SettingsError.Problem) -> String {
    switch problem {
    case .textTooLong: "longer than 64 KiB"
    case .notASetting: "neither a setting, a section nor a comment"
    case .unknownSection: "unknown section"
    case .unknownKey: "unknown key"
    case .duplicateKey: "this key stands twice"
    case .missing(let key): text(key) + " is missing"
    case .value(let key, let wanted): text(key) + ": wanted " + text(wanted)
    case .tooMany(let what): "too many of " + text(what)
    case .notUnique(let what): "two have the same " + text(what)
    case .outOfMemory: "out of memory"
    }
  }

  private static func text(of problem: StateRecord.Problem) -> String {
    switch problem {
    case .size: "the state has a wrong size"
    case .bothSlotsBroken: "both records of the state are damaged"
    case .exhausted: "the state's sequence number is at its end"
    case .crypto(let error): "libcrypto: " + text(of: error)
    }
  }

  private static func text(of error: CryptoError) -> String {
    switch error {
    case .unavailable: "HMAC or SHA-256 is not available"
    case .failed: "HMAC or SHA-256 failed"
    case .outOfMemory: "out of memory"
    }
  }

  private static func errorText(_ number: Int32) -> String {
    // SAFETY: both calls return static strings or NULL.
    let name = unsafe sp_errno_name(number).map { unsafe String(cString: $0) }
    let text = unsafe sp_errno_text(number).map { unsafe String(cString: $0) }
    return (text ?? "error \(number)") + " (" + (name ?? "\(number)") + ")"
  }

  private static func text(_ text: StaticString) -> String {
    text.withUTF8Buffer { unsafe String(decoding: $0, as: UTF8.self) }
  }

  private static func octal(_ mode: UInt32) -> String {
    var digits: [UInt8] = []
    for shift in [9, 6, 3, 0] as [UInt32] {
      digits.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: mode >> shift & 7))
    }
    return String(decoding: digits, as: UTF8.self)
  }
}
