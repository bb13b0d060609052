/// One thing that doctor found out.
package struct Finding: Equatable {
  /// A name of the finding that programs may rely on.
  package let id: String
  /// What it belongs to: a service, or a part of the machine.
  package let area: Area
  package let severity: Severity
  /// What it is and means, in one sentence.
  package let text: String
  /// Where it stands.
  package var location: FileLocation?
  /// What makes it go away; any one of them.
  package var fixes: [Fix] = []
  /// What it does to logins as things stand.
  package var effect: Effect?

  /// Something that is as it should be.
  static func ok(_ id: String, _ area: Area, _ text: String) -> Finding {
    Finding(id: id, area: area, severity: .ok, text: text)
  }

  /// Something that could not be looked at: never taken for good.
  static func unseen(_ id: String, _ area: Area, _ text: String, _ fixes: [Fix] = []) -> Finding {
    Finding(id: id, area: area, severity: .unseen, text: text, fixes: fixes)
  }
}

/// Where a finding belongs, in the order of the report.
package enum Area: Hashable, Comparable {
  case service(String)
  case policy, people, store, clock, module, machine

  package var name: String {
    switch self {
    case .service(let name): name
    case .policy: "policy"
    case .people: "people"
    case .store: "store"
    case .clock: "clock"
    case .module: "module"
    case .machine: "machine"
    }
  }
}

/// How bad a finding is; the report and the exit status take the worst.
package enum Severity: String, Comparable, CaseIterable {
  case ok
  /// It could not be looked at.
  case unseen
  case warning
  /// It keeps somebody out, or lets somebody in without a code.
  case error

  package static func < (a: Severity, b: Severity) -> Bool { a.rank < b.rank }

  private var rank: Int {
    switch self {
    case .ok: 0
    case .unseen: 1
    case .warning: 2
    case .error: 3
    }
  }
}

/// What an error does.
package enum Effect: Equatable {
  /// Who cannot log in.
  case locksOut(String)
  /// Who gets in without a code.
  case letsIn(String)
}

/// A line of a file.
package struct FileLocation: Equatable, Comparable, Sendable {
  package let file: String
  /// From 1; nil where it is the file as a whole.
  package var line: Int?

  package var text: String { line.map { "\(file):\($0)" } ?? file }

  /// A file that the next update of its package overwrites.
  var isVendors: Bool { file.hasPrefix("/usr/") }

  package static func < (a: FileLocation, b: FileLocation) -> Bool {
    (a.file, a.line ?? 0) < (b.file, b.line ?? 0)
  }
}

/// Names for a sentence, the first five of them.
func listed(_ names: [String]) -> String {
  let shown = names.prefix(5).joined(separator: ", ")
  return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
}

/// What makes a finding go away.
package enum Fix: Equatable {
  /// To be typed by root.
  case command(String)
  /// To be written in place of the line that the finding names.
  case line(String)
  /// To be written as a new first line of the file that the finding names.
  case add(String)
  /// What only a person can do.
  case advice(String)

  package var text: String {
    switch self {
    case .command(let text), .line(let text), .add(let text), .advice(let text): text
    }
  }

  /// What it is, for people and for programs.
  package var kind: String {
    switch self {
    case .command: "command"
    case .line: "line"
    case .add: "add"
    case .advice: "advice"
    }
  }
}
