/// The result of examining something on the machine.
package enum Probe<Value> {
  case seen(Value)
  /// It does not exist.
  case absent
  /// It could not be examined, for this reason.
  case unseen(String)

  package var value: Value? { if case .seen(let value) = self { value } else { nil } }

  func map<Other>(_ change: (Value) -> Other) -> Probe<Other> { flatMap { .seen(change($0)) } }

  func flatMap<Other>(_ change: (Value) -> Probe<Other>) -> Probe<Other> {
    switch self {
    case .seen(let value): change(value)
    case .absent: .absent
    case .unseen(let reason): .unseen(reason)
    }
  }
}

extension Probe: Equatable where Value: Equatable {}

/// The output of a program and how it ended.
package struct CommandOutput: Equatable {
  /// The exit status; 128 + n after signal n, -1 after a timeout.
  package var status: Int32 = 0
  package var output = ""
  var errors = ""

  /// Whether there may have been more output than is kept.
  package var isCut: Bool { output.utf8.count >= Machine.longestText }

  /// The first line of its error message.
  var complaint: String {
    if status == -1 { return "timed out" }
    let line = (errors + "\n" + output).split(separator: "\n").first
    return line.map(String.init) ?? "exit status \(status)"
  }
}

/// What stat(2) says about a file.
struct FileFacts: Equatable {
  var owner: UInt32 = 0
  var group: UInt32 = 0
  /// The twelve permission bits.
  var mode: UInt32 = 0o644
  var size: UInt64 = 0
  var links: UInt64 = 1
  var isRegular = true
  var isDirectory = false
  var isSocket = false
  /// In seconds since 1970.
  var modified: Int64 = 0
  /// When the content, the name or the rights were changed last, which no program can set.
  var changed: Int64 = 0
  /// The birth time in seconds since 1970; 0 if the file system does not record it.
  var born: Int64 = 0

  var isOthersToWrite: Bool { mode & 0o022 != 0 }
}
