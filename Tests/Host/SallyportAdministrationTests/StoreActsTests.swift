import Dispatch
import Foundation
import Glibc
import SallyportCore
import TestSupport
import Testing

@testable import SallyportAdministration
@testable import SallyportSystem

@Suite struct `The file of acts` {
  private let scratch: Scratch
  private var store: Store { scratch.store }

  init() throws { scratch = try Scratch() }

  private func path(_ month: String = "2026-11") -> String { "\(scratch.root)/acts/\(month)" }

  private func lines(_ month: String = "2026-11") throws -> [String] {
    try #require(try store.acts(of: month)).lines.map { String(decoding: $0, as: UTF8.self) }
  }

  private func mode(_ path: String) throws -> Int {
    let facts = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(facts[.posixPermissions] as? Int)
  }

  @Test func `Is its owner's alone, and one for each month`() throws {
    #expect(try store.monthsOfActs() == [])
    #expect(try store.acts(of: "2026-11") == nil)
    try store.append(acts: ["a", "b"], month: "2026-11")
    try store.append(acts: ["c"], month: "2026-11")
    try store.append(acts: ["d"], month: "2026-12")
    #expect(try lines() == ["a", "b", "c"])
    #expect(try store.monthsOfActs() == ["2026-11", "2026-12"])
    #expect(try mode("\(scratch.root)/acts") == 0o700)
    #expect(try mode(path()) == 0o600)
  }

  @Test func `Goes on in a line of its own after one that was cut short`() throws {
    try store.append(acts: ["whole"], month: "2026-11")
    let file = try #require(FileHandle(forWritingAtPath: path()))
    try file.seekToEnd()
    try file.write(contentsOf: Data("cut sho".utf8))
    #expect(try store.acts(of: "2026-11")?.isCutShort == true)
    #expect(try lines() == ["whole"])
    try store.append(acts: ["next"], month: "2026-11")
    #expect(try store.acts(of: "2026-11")?.isCutShort == false)
    #expect(try lines() == ["whole", "cut sho", "next"])
  }

  // decisive
  @Test func `Takes whole lines from thirty-two writers at once`() throws {
    let store = store
    DispatchQueue.concurrentPerform(iterations: 32) { writer in
      for number in 0..<20 {
        let line = "\(writer):\(number) " + String(repeating: "x", count: 100 + 7 * writer)
        try? store.append(acts: [line], month: "2026-11")
      }
    }
    let found = try lines()
    #expect(found.count == 640)
    for line in found {
      let writer = try #require(Int(line.prefix { $0 != ":" }))
      #expect(line.hasSuffix(" " + String(repeating: "x", count: 100 + 7 * writer)))
    }
    for writer in 0..<32 {
      let own = found.filter { $0.hasPrefix("\(writer):") }
      let numbers = own.compactMap { Int($0.drop { $0 != ":" }.dropFirst().prefix { $0 != " " }) }
      #expect(numbers == Array(0..<20), "each writer's lines keep their order")
    }
  }

  @Test func `Keeps twenty-four months, and drops one for a clock that is wrong`() throws {
    for number in 0..<24 {
      let month = String(format: "%d-%02d", 2025 + number / 12, number % 12 + 1)
      try store.append(acts: ["a"], month: month)
    }
    #expect(try store.monthsOfActs().count == 24)
    try store.append(acts: ["far ahead"], month: "2199-01")
    #expect(try store.monthsOfActs().first == "2025-02")
    #expect(try store.monthsOfActs().count == 24)
    // The own month stays, however old it seems.
    try store.append(acts: ["far behind"], month: "1970-01")
    #expect(try store.monthsOfActs().prefix(2) == ["1970-01", "2025-03"])
    #expect(try lines("1970-01") == ["far behind"])
  }

  // shows: true-log
  @Test func `Is not written through a link, a pipe or what others can read`() throws {
    try store.append(acts: ["a"], month: "2026-11")
    let other = "\(scratch.path)/other"
    try Data().write(to: URL(fileURLWithPath: other))
    try FileManager.default.removeItem(atPath: path())
    try FileManager.default.createSymbolicLink(atPath: path(), withDestinationPath: other)
    #expect(throws: StoreTrouble.self) { try store.append(acts: ["b"], month: "2026-11") }
    #expect(try Data(contentsOf: URL(fileURLWithPath: other)).isEmpty)
    #expect(unsafe mkfifo(path("2026-12"), 0o600) == 0)
    #expect(throws: StoreTrouble.self) { try store.append(acts: ["b"], month: "2026-12") }
    try store.append(acts: ["a"], month: "2027-01")
    #expect(unsafe chmod(path("2027-01"), 0o644) == 0)
    #expect(throws: StoreTrouble.unsafe(path: path("2027-01"), .mode(0o644))) {
      try store.append(acts: ["b"], month: "2027-01")
    }
    #expect(throws: StoreTrouble.self) { try store.acts(of: "2027-01") }
  }

  @Test func `Is not made where there is no store`() throws {
    let none = Store(root: "\(scratch.path)/none", owner: .effectiveUser)
    #expect(throws: StoreTrouble.noStore(path: "\(scratch.path)/none")) {
      try none.append(acts: ["a"], month: "2026-11")
    }
    #expect(!FileManager.default.fileExists(atPath: "\(scratch.path)/none"))
  }

  @Test func `Does not go with the image of a machine`() throws {
    try store.append(acts: ["a"], month: "2026-11")
    try store.empty()
    #expect(try store.monthsOfActs() == [])
    #expect(!FileManager.default.fileExists(atPath: "\(scratch.root)/acts"))
  }

  @Test func `Of a great length is read from its end`() throws {
    let line = String(repeating: "y", count: 999)
    try store.append(acts: ["first"], month: "2026-11")
    let many = Array(repeating: line, count: Store.longestActs / 1000 + 1)
    try store.append(acts: many, month: "2026-11")
    let found = try #require(try store.acts(of: "2026-11"))
    #expect(found.isTooLong)
    #expect(found.lines.count == Store.longestActs / 1000)
    #expect(found.lines.allSatisfy { $0.count == 999 })
  }
}
