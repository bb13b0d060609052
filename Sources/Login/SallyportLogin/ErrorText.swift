internal import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// The words of errors, for the log and for people: each front end adds what to do next.

extension LogLine {
  /// What is wrong with the machine or the store: the path, and the fact.
  @inline(never) package mutating func add(_ trouble: StoreTrouble) {
    let path = trouble.pathBytes
    add(path)
    if case .malformed(_, let error) = trouble { add(":", error.line) }
    if !path.isEmpty { add(": ") }
    add(factOf: trouble)
  }

  private mutating func add(factOf trouble: StoreTrouble) {
    switch trouble {
    case .system(let call, _, let number):
      add(call)
      add(": ")
      add(error: number)
    case .noStore: add("no such store")
    case .unsafe(_, let flaw): add(flaw)
    case .incomplete: add("missing, the enrollment is incomplete")
    case .malformed(_, let error):
      add(error.problem)
      if !error.found.isEmpty {
        add(", found \"")
        add(escaped(error.found))
        add("\"")
      }
    case .state(_, .crypto(let error)), .crypto(let error):
      add("libcrypto: ")
      add(error.text)
    case .state(_, let problem): add(problem.text)
    case .foreignState: add("belongs to another enrollment")
    case .otherUser(_, let found):
      add("is the enrollment of ")
      add(escaped(found.bytes, limit: 255))
    case .otherUID(_, let recorded, let found):
      add("is the enrollment of uid ", Int(recorded))
      if let found {
        add(", the account has uid ", Int(found))
      } else {
        add(", the account does not exist")
      }
    case .busy: add("timed out waiting for the lock")
    case .unsettled: add("the enrollment kept changing")
    case .exists: add("already exists")
    case .service(_, let fault): add(fault)
    case .outOfMemory: add("out of memory")
    }
  }

  private mutating func add(_ flaw: StoreTrouble.Flaw) {
    switch flaw {
    case .symbolicLink: add("is a symbolic link")
    case .notADirectory: add("is not a directory")
    case .notRegular: add("is not a regular file")
    case .owner(let found, let wanted):
      add("owned by uid ", Int(found))
      add(", must be uid ", Int(wanted))
    case .mode(let mode):
      add("mode ")
      add(octal: mode)
      add(" is too open")
    case .links(let count):
      add("has ")
      add(count)
      add(" hard links, must have one")
    case .tooLong: add("longer than 64 KiB")
    }
  }

  private mutating func add(_ fault: StoreTrouble.ServiceFault) {
    switch fault {
    case .absent: add("the service is not running (systemctl enable --now sallyport.socket)")
    case .notServed: add("the service does not do this for this program")
    case .notASocket: add("is not a socket")
    case .notRoot(let user):
      add("the service has uid ", Int(user))
      add(", must be uid 0")
    case .busy: add("the service is busy")
    case .silent: add("no answer from the service")
    case .unknown: add("no answer came; the result is unknown")
    case .garbage: add("the service's answer cannot be read")
    case .trouble: add("the service failed, see its log")
    }
  }

  /// Why a line of a file cannot be read.
  package mutating func add(_ problem: SettingsError.Problem) {
    switch problem {
    case .textTooLong: add("longer than 64 KiB")
    case .notASetting: add("not a setting, section or comment")
    case .unknownSection: add("unknown section")
    case .unknownKey: add("unknown key")
    case .moving: add("migration not finished (sallyport fleet push, take)")
    case .duplicateKey: add("duplicate key")
    case .missing(let key):
      add(key)
      add(" is missing")
    case .value(let key, let wanted):
      add(key)
      add(": expected ")
      add(wanted)
    case .tooMany(let what):
      add("too many: ")
      add(what)
    case .notUnique(let what):
      add("duplicate ")
      add(what)
    case .outOfMemory: add("out of memory")
    }
  }

  /// "No space left on device (ENOSPC)", in English whatever the locale is.
  package mutating func add(error number: Int32) {
    // SAFETY: both calls return static strings or NULL.
    if let text = unsafe sys_errno_text(number) { unsafe add(cString: text) } else { add("error") }
    add(" (")
    if let name = unsafe sys_errno_name(number) {
      unsafe add(cString: name)
    } else {
      add(Int(number))
    }
    add(")")
  }

  @unsafe private mutating func add(cString text: UnsafePointer<CChar>) {
    // SAFETY: a C string.
    add(unsafe [UInt8](UnsafeRawBufferPointer(start: text, count: strlen(text))))
  }

  private mutating func add(octal mode: UInt32) {
    for place in 0..<4 { add(Int(mode >> (9 - 3 * UInt32(place)) & 7)) }
  }
}

extension StateRecord.Problem {
  fileprivate var text: StaticString {
    switch self {
    case .size: "wrong size"
    case .bothSlotsBroken: "both records of the state are corrupt"
    case .exhausted: "sequence number exhausted"
    case .crypto(let error): error.text
    }
  }
}

extension CryptoError {
  fileprivate var text: StaticString {
    switch self {
    case .unavailable: "HMAC or SHA-256 is not available"
    case .failed: "HMAC or SHA-256 failed"
    case .outOfMemory: "out of memory"
    }
  }
}
