import Glibc

/// The text form of Prometheus.
struct Metrics {
  /// The labels within braces, or nothing.
  typealias Value = (labels: String, value: String)

  enum Kind: String { case gauge, counter, histogram }

  private let prefix: String
  private var lines: [String] = []

  /// `prefix`: of all names.
  init(_ prefix: String) { self.prefix = prefix }

  var text: String { lines.joined(separator: "\n") + "\n" }

  /// Nothing where there are no values. Those of a histogram have what follows its name in front of
  /// their labels.
  mutating func add(_ what: String, _ kind: Kind, help: String, _ values: [Value]) {
    if values.isEmpty { return }
    let name = "\(prefix)_\(what)"
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(kind.rawValue)"]
    lines += values.map { "\(name)\($0.labels) \($0.value)" }
  }

  /// Puts a text in a file's place, whole or not at all, for everybody to read. 0 or an errno.
  static func write(_ text: String, to path: String) -> Int32 {
    let new = path + ".new"
    // SAFETY: the C strings and the bytes live for the calls; so for those below.
    let file = unsafe open(new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard file >= 0 else { return errno }
    let bytes = Array(text.utf8)
    let done = unsafe Glibc.write(file, bytes, bytes.count)
    let fault = done == bytes.count ? 0 : done < 0 ? errno : ENOSPC
    _ = fchmod(file, 0o644)
    guard close(file) == 0, fault == 0 else { return fault == 0 ? errno : fault }
    return unsafe rename(new, path) == 0 ? 0 : errno
  }
}

/// As JSON has it; in Prometheus's text form the same is right.
func quoted(_ text: String) -> String {
  var quoted = "\""
  for scalar in text.unicodeScalars {
    if scalar == "\"" || scalar == "\\" {
      quoted += "\\\(scalar)"
    } else if scalar == "\n" {
      quoted += "\\n"
    } else {
      quoted.unicodeScalars.append(scalar.value < 0x20 ? " " : scalar)
    }
  }
  return quoted + "\""
}
