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
      if PAMControls(word: Array(word.utf8), .since16, isBroken: &isBroken) == self { return word }
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
  package let location: FileLocation
  /// Such as `has nullok`.
  package let text: String
}

extension ServiceStack {
  /// How each of our lines in the service's own file may let in somebody whom none of the written
  /// ones would. Lines that cannot be read, or of a phase in which nothing was written, are left
  /// out.
  package func changes(since written: [String]) -> [LineChange] {
    let isOld = ServiceStack.lackControls(written)
    let lines = isOld ? written.map(ServiceStack.withControl) : written
    let file = Array(lines.map { $0 + "\n" }.joined().utf8)
    let before = StackParser.parse(
      service: service, .upstream(.since16) { $0 == "/etc/pam.d/\(service)" ? file : nil })
    return PAMPhase.allCases.flatMap { phase in
      changes(own(phase), since: before.own(phase), byWordsAlone: isOld)
    }
  }

  /// Whether lines were recorded by the version that left the controls out.
  package static func lackControls(_ written: [String]) -> Bool {
    written.contains { line in
      line.split(separator: " ").dropFirst().first?.hasSuffix("pam_sallyport.so") == true
    }
  }

  private static func withControl(_ line: String) -> String {
    let words = line.split(separator: " ", maxSplits: 1)
    return words.joined(separator: " required ")
  }

  private func own(_ phase: PAMPhase) -> [StackEntry] {
    self[phase].filter {
      StackAnalysis.isOurs($0) && $0.location.file == "/etc/pam.d/\(service)"
    }
  }

  private func changes(
    _ now: [StackEntry], since before: [StackEntry], byWordsAlone: Bool
  ) -> [LineChange] {
    guard !before.isEmpty, let left = now.first else { return [] }
    let changes = now.compactMap { entry in
      let texts = before.map { entry.change(since: $0, byWordsAlone: byWordsAlone) }
      let text = texts.contains(nil) ? nil : texts[0]
      return text.map { LineChange(location: entry.location, text: $0) }
    }
    guard now.count < before.count else { return changes }
    return changes + [LineChange(location: left.location, text: "is one of \(before.count) lines")]
  }
}

extension StackEntry {
  /// nil if it is the same, or only tightens.
  fileprivate func change(since before: StackEntry, byWordsAlone: Bool) -> String? {
    var texts: [String] = []
    if module != before.module { texts.append("names \(module) and not \(before.module)") }
    if !byWordsAlone, controls.isLooser(than: before.controls) {
      texts.append("is \(controls.written) and not \(before.controls.written)")
    }
    texts += arguments.filter { !before.arguments.contains($0) && $0.loosens }.map { "has \($0)" }
    texts += before.arguments.filter {
      !arguments.contains($0) && ($0.tightens || $0.isOfFiles)
    }.map { "lacks \($0)" }
    return texts.isEmpty ? nil : texts.joined(separator: ", ")
  }
}

extension String {
  fileprivate var isOfFiles: Bool { hasPrefix("store=") || hasPrefix("conf=") }
  fileprivate var loosens: Bool { isOfFiles || self == "nullok" || self == "enroll" }
  fileprivate var tightens: Bool {
    ["after-key", "demand", "use_first_pass"].contains(self)
  }
}
