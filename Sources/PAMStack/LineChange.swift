/// Our lines as text, to be compared later with what is there.
extension StackEntry {
  /// The line as pam.d(5) has it, with one blank between words.
  package var written: String {
    let words = arguments.map { word in
      let isPlain = !word.isEmpty && !word.contains { " \t[]".contains($0) }
      return isPlain ? word : "[\(word.replacing("]", with: "\\]"))]"
    }
    return (["\(phase)", controls.written, module] + words).joined(separator: " ")
  }
}

extension PAMControls {
  fileprivate var written: String {
    for word in ["required", "requisite", "optional", "sufficient"] {
      var isBroken = false
      if PAMControls(word: Array(word.utf8), isBroken: &isBroken) == self { return word }
    }
    let usual = self[.abort]
    let pairs = PAMCode.all.filter { self[$0] != usual }.map { "\($0.name)=\(self[$0].written)" }
    return "[\((pairs + ["default=\(usual.written)"]).joined(separator: " "))]"
  }

  /// Whether a login that `other` refuses may succeed, or one that it goes on with may end here.
  fileprivate func isLooser(than other: PAMControls) -> Bool {
    PAMCode.all.contains { code in
      switch self[code] {
      case .bad, .die: false
      case .ok: ![.ok, .done].contains(other[code])
      case .ignore, .done, .reset, .jump, .invalid: self[code] != other[code]
      }
    }
  }
}

extension PAMAction {
  fileprivate var written: String {
    if case .jump(let count) = self { "\(count)" } else { "\(self)" }
  }
}

/// A difference between one of our lines and the one that was written, by which somebody may get
/// in who was refused, or others decide.
package struct LineChange: Equatable, Sendable {
  package let location: StackLocation
  /// Such as `has nullok`.
  package let text: String
}

extension ServiceStack {
  /// The first of our lines that may let in somebody whom none of the written ones would. Lines
  /// that cannot be read, or of a phase in which nothing was written, are left out.
  package func change(since written: [String]) -> LineChange? {
    let file = Array(written.map { $0 + "\n" }.joined().utf8)
    let before = StackParser.parse(
      service: service, .upstream { $0 == "/etc/pam.d/\(service)" ? file : nil })
    return PAMPhase.allCases.lazy.compactMap { phase in
      change(ours(phase), since: before.ours(phase))
    }.first
  }

  private func ours(_ phase: PAMPhase) -> [StackEntry] {
    self[phase].filter(StackAnalysis.isOurs)
  }

  private func change(_ now: [StackEntry], since before: [StackEntry]) -> LineChange? {
    for entry in now where !before.isEmpty {
      let texts = before.map { entry.change(since: $0) }
      if !texts.contains(nil), let text = texts[0] {
        return LineChange(location: entry.location, text: text)
      }
    }
    guard now.count < before.count, let left = now.first else { return nil }
    return LineChange(location: left.location, text: "is one of \(before.count) lines")
  }
}

extension StackEntry {
  /// nil if it is the same, or only tightens.
  fileprivate func change(since before: StackEntry) -> String? {
    if module != before.module { return "names \(module) and not \(before.module)" }
    if controls.isLooser(than: before.controls) {
      return "is \(controls.written) and not \(before.controls.written)"
    }
    if let word = arguments.first(where: { !before.arguments.contains($0) && $0.loosens }) {
      return "has \(word)"
    }
    let lost = before.arguments.first { !arguments.contains($0) && ($0.tightens || $0.isOfFiles) }
    return lost.map { "lacks \($0)" }
  }
}

extension String {
  fileprivate var isOfFiles: Bool { hasPrefix("store=") || hasPrefix("conf=") }
  fileprivate var loosens: Bool { isOfFiles || self == "nullok" || self == "enroll" }
  fileprivate var tightens: Bool {
    ["after-key", "demand", "use_first_pass"].contains(self)
  }
}
