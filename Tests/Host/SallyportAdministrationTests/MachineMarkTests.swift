import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportAdministration
@testable import SallyportSystem

private let (one, other) = (String(repeating: "0a", count: 16), String(repeating: "0b", count: 16))

@Suite struct `The mark of the machine` {
  @Test(arguments: [
    ([MachineMark.Part: String](), [MachineMark.Part: String](), [MachineMark.Part]()),
    ([.machine: one], [.machine: one], []),
    ([.machine: one], [.machine: other], [.machine]),
    ([.machine: one], [.product: other], []),
    ([.machine: one, .product: one], [.machine: one, .product: other], [.product]),
    (
      [.word: one, .machine: one, .product: one], [.word: other, .machine: other, .product: other],
      [.product, .machine, .word]
    ),
    ([.product: "\(one)\n"], [.product: one.uppercased()], []),
    ([.machine: one], [.machine: "uninitialized\n"], []),
    ([.machine: one], [.machine: ""], []),
    ([.product: one], [.product: "00000000-0000-0000-0000-000000000000"], []),
    ([.product: one], [.product: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"], []),
    ([.product: one], [.product: "To be filled by O.E.M."], []),
  ]) func `differs where both machines tell a part, and tell it otherwise`(
    store: [MachineMark.Part: String], machine: [MachineMark.Part: String],
    differing: [MachineMark.Part]
  ) {
    #expect(MachineMark(store).differences(from: MachineMark(machine)) == differing)
    #expect(MachineMark(machine).differences(from: MachineMark(store)) == differing)
  }

  @Test func `is read as it was written, and what is torn off is not compared`() {
    var mark = MachineMark([.machine: one, .product: other])
    (mark.left, mark.since) = (["bob", "%%ab"], UnixTime(1_772_550_000))
    #expect(MachineMark(text: mark.text) == mark)
    for end in mark.text.indices {
      let part = MachineMark(text: String(mark.text[..<end]))
      #expect(part.differences(from: mark) == [])
    }
  }

  @Test func `is made where there is none, gets what it lacks, and keeps another machine's`() throws
  {
    let scratch = try Scratch()
    #expect(try scratch.store.machineMark() == nil)
    try scratch.store.adopt(MachineMark([.machine: one]))
    try scratch.store.adopt(MachineMark([.product: one]))
    let whole = MachineMark([.machine: one, .product: one])
    #expect(try scratch.store.machineMark() == whole)
    try scratch.store.adopt(MachineMark([.machine: other, .word: one]))
    #expect(try scratch.store.machineMark() == whole)
    var one = whole
    one.left = ["bob"]
    try scratch.store.set(one)
    try scratch.store.adopt(MachineMark([.word: other]))
    #expect(try scratch.store.machineMark()?.left == ["bob"])
  }
}
