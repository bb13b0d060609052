import PamStacks

extension Fuzzer {
  /// Files of pam.d, parted by 0x1e: the service x, then y and z, which it may include, then
  /// `other`. Every content gives stacks whose entries are where they say; and what the walk of all
  /// ways says no way leads to, a walk with given answers does not come to.
  static let stack = Fuzzer(name: "stack") { input in
    let parts = input.split(separator: 0x1e, omittingEmptySubsequences: false)
    let names = ["x", "y", "z", "other"]
    var files: [String: [UInt8]] = [:]
    for (name, part) in zip(names, parts) { files["/etc/pam.d/\(name)"] = Array(part) }
    let found = files
    for files in [StackFiles.debian { found[$0] }, StackFiles.upstream { found[$0] }] {
      let stack = StackParser.parse(service: "x", files)
      for phase in PAMPhase.allCases { keepsItsPlaces(stack[phase], found) }
      let count = PAMPhase.allCases.reduce(0) { $0 + stack[$1].count }
      // Ways grow with the square of the entries; what counts shows in small stacks.
      if count <= 24 { agrees(stack) }
    }
  }
}

private func keepsItsPlaces(_ entries: [StackEntry], _ files: [String: [UInt8]]) {
  for entry in entries {
    let lines = files[entry.place.file, default: []].split(
      separator: 0x0a, omittingEmptySubsequences: false)
    must((1...max(lines.count, 1)).contains(entry.place.line), "\(entry.place.text) is no line")
    must((0..<16).contains(entry.level), "level \(entry.level)")
  }
}

/// Walks with one answer for each module, chosen among what the analysis takes it to answer.
private func agrees(_ stack: ServiceStack) {
  let findings = StackAnalysis(stack).findings
  let isUnsure = findings.contains(.tooComplex(.auth))
  var wasOurs = false
  let accepted = stack.verdict(.auth) { answer(of: $0, ours: .success, &wasOurs) }
  if accepted == .success {
    must(isUnsure || !findings.contains(.nobodyPasses(.auth)), "somebody passes")
  }
  wasOurs = false
  let refused = stack.verdict(.auth) { answer(of: $0, ours: .authenticationError, &wasOurs) }
  guard refused == .success, !isUnsure, stack[.auth].contains(where: isOurs) else { return }
  let isTold = findings.contains { finding in
    switch finding {
    case .notCounted: wasOurs
    case .skipped, .neverReached: !wasOurs
    case _: false
    }
  }
  must(isTold, "a wrong code lets in, and nothing tells of it")
}

private func isOurs(_ entry: StackEntry) -> Bool {
  entry.kind == .module && entry.moduleName == "pam_sallyport"
}

private func answer(of entry: StackEntry, ours: PAMCode, _ wasOurs: inout Bool) -> PAMCode {
  if isOurs(entry) {
    wasOurs = true
    return ours
  }
  return ["pam_deny", "pam_rootok"].contains(entry.moduleName) ? .authenticationError : .success
}
