/// The outcome of a look at something on the machine.
package enum Probe<Value> {
  case seen(Value)
  /// It is cleanly not there.
  case absent
  /// It could not be looked at, for this reason.
  case unseen(String)

  var value: Value? {
    switch self {
    case .seen(let value): value
    case .absent, .unseen: nil
    }
  }

  func map<Other>(_ change: (Value) -> Other) -> Probe<Other> {
    switch self {
    case .seen(let value): .seen(change(value))
    case .absent: .absent
    case .unseen(let reason): .unseen(reason)
    }
  }
}

extension Probe: Equatable where Value: Equatable {}

/// What a program said and how it ended.
package struct CommandOutput: Equatable {
  /// Its exit status; 128 + n after a signal, -1 where the time was over.
  var status: Int32 = 0
  var output = ""
  var errors = ""

  /// The first line of its complaint.
  var complaint: String {
    if status == -1 { return "timed out" }
    let line = (errors + "\n" + output).split(separator: "\n").first
    return line.map(String.init) ?? "exit status \(status)"
  }
}

/// What stat(2) says of a file.
struct FileFacts: Equatable {
  var owner: UInt32 = 0
  /// The twelve permission bits.
  var mode: UInt32 = 0o644
  var size: UInt64 = 0
  var links: UInt64 = 1
  var isRegular = true
  var isDirectory = false
  /// Seconds since 1970.
  var modified: Int64 = 0
  /// As `modified`; 0 where the file system does not tell.
  var born: Int64 = 0

  var isOthersToWrite: Bool { mode & 0o022 != 0 }
}
