import Glibc
import SallyportSupport

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
    removeFile(new)
    do throws(SystemError) {
      try putFile(
        path, through: new, isNew: false, Ownership(mode: 0o644), Array(text.utf8))
      return 0
    } catch {
      return error.number
    }
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
