import Testing

/// Our walk against the libpam that is installed here.
@Suite(.serialized) struct `Our walk beside libpam` {
  // shows: enroll-after-yes, walk
  @Test func `the walk gives libpam's verdict on stacks by chance`() throws {
    let real = try RealLibpam()
    var seen: Set<Int> = []
    for seed in 0..<800 {
      var random = RandomStack(seed: UInt64(seed), directory: real.directory)
      let files = random.files()
      for file in files { try real.write(file.name, file.text) }
      let (wanted, found) = (real.verdicts("service"), real.walked("service"))
      try #require(
        wanted == found,
        "seed \(seed): \(files.map { "== \($0.name)\n\($0.text)" }.joined())")
      seen.formUnion(wanted.values)
    }
    #expect(seen.isSuperset(of: [0, 6, 7, 12, 26]), "not every kind of verdict came up: \(seen)")
  }
}
