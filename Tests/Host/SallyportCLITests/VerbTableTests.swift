import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCLI

@Suite struct `Root's verbs on the files of a machine` {
  @Test func `do to one person what the table of all ways says`() throws {
    for one in try VerbCase.all(on: .files) {
      let bench = Bench()
      let account = Account(name: try #require(UserName(Array("nobody".utf8))), uid: 65534)
      let store = Store(root: bench.directory, owner: .effectiveUser)
      try store.prepare()
      if let (enrollment, state) = try one.stored(for: account.name, uid: 65534, at: bench.now) {
        try store.create(enrollment, state)
      }
      try one.replace(account, in: store, at: bench.now)
      if one.isBlocked { _ = try store.block(account, until: nil, at: bench.now) }
      let run = VerbRun(one: one, way: .files, user: "nobody", now: bench.now)
      try run.check { bench.runAsRoot($0, on: $1, store: bench.directory) }
      let found = try store.load(account).map { ($0.enrollment, $0.state) }
      let facts = try one.facts(
        on: .files, found, for: account.name, uid: 65534, at: bench.now)
      #expect(facts.found == facts.expected, "\(one)")
    }
  }
}
