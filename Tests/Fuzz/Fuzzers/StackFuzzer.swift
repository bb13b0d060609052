import PAMStack

extension Fuzzer {
  /// Files of pam.d, parted by a line of two equals signs: the service, `one`, `two`. Whatever they
  /// hold is read and walked to an end, each entry and each fault has a line that is there, and a
  /// stack in which every module refuses lets nobody in.
  // shows: enroll-after-yes
  static let stack = Fuzzer(name: "stack") { input in
    let files = input.parts(at: Array("\n==\n".utf8))
    let stack = parsed(files)
    for fault in stack.faults {
      must(
        isPlaced(fault.location, in: files) || fault.problem == .noFile, "no such line: \(fault)")
    }
    for phase in PAMPhase.allCases {
      for entry in stack[phase] {
        must(isPlaced(entry.location, in: files), "no such line: \(entry)")
      }
      for code in [PAMCode.authenticationError, .permissionDenied, .userUnknown, .abort] {
        must(stack.verdict(phase) { _ in code } != .success, "everybody refuses, and yet in")
      }
    }
    _ = StackAnalysis(stack).findings
    let shifted = parsed([Array("# a comment\n".utf8) + files[0]] + files.dropFirst())
    for phase in PAMPhase.allCases {
      must(
        shifted[phase].map(\.module) == stack[phase].map(\.module)
          && shifted[phase].map(\.kind) == stack[phase].map(\.kind), "a comment changes the stack"
      )
    }
  }
}

private func parsed(_ files: [[UInt8]]) -> ServiceStack {
  let names = ["service", "one", "two"].map { "/etc/pam.d/" + $0 }
  return StackParser.parse(
    service: "service",
    .debian(.before16) { path in
      names.firstIndex(of: path).flatMap { files.indices.contains($0) ? files[$0] : nil }
    })
}

private func isPlaced(_ location: FileLocation, in files: [[UInt8]]) -> Bool {
  let names = ["service", "one", "two"].map { "/etc/pam.d/" + $0 }
  guard let index = names.firstIndex(of: location.file), files.indices.contains(index) else {
    return false
  }
  return (1...files[index].count { $0 == UInt8(ascii: "\n") } + 1).contains(location.line ?? 0)
}

extension [UInt8] {
  fileprivate func parts(at separator: [UInt8]) -> [[UInt8]] {
    split(separator: separator, omittingEmptySubsequences: false).map { Array($0) }
  }
}
