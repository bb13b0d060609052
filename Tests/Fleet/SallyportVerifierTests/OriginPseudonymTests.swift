import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportLogin
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite struct `Where a host says that a login comes from` {
  private func context(
    _ host: String, _ origin: LoginQuestion.StatedOrigin, isOwn: Bool = true
  ) -> LoginContext {
    var question = LoginQuestion(
      name: Array("alice".utf8), service: Array("sshd".utf8), origin: origin, policy: Policy(),
      millisecondsLeft: 5000, verb: .enrolled)
    question.isOwn = isOwn
    return OriginPseudonyms(on: Array(host.utf8)).context(of: question)
  }

  private func address(_ last: UInt8) throws -> LoginQuestion.StatedOrigin {
    .address(try #require(NumericAddress([192, 0, 2, last])))
  }

  // shows: host-places
  @Test func `is a place of its own on each host`() throws {
    let places = [
      try context("web1", address(1)), try context("web2", address(1)),
      try context("web1", address(2)), context("web1", .local),
      context("web2", .local), context("web1", .local, isOwn: false),
      context("web1", .unknown),
    ]
    for (index, place) in places.enumerated() {
      for other in places[..<index] { #expect(place.origin != other.origin) }
    }
    #expect(try context("web1", address(1)).origin == places[0].origin)
    #expect(places[5].origin == .local(own: false))
    #expect(places[6].origin == .unknown)
  }

  @Test func `is remembered only where it is another machine, and on that host`() throws {
    let one = try #require(try context("web1", address(1)).address)
    #expect(one.isElsewhere)
    #expect(try context("web2", address(1)).address != one)
    #expect(try context("web1", address(1)).address == one)
    let loopback = try #require(NumericAddress([127, 0, 0, 1]))
    #expect(context("web1", .address(loopback)).address == nil)
    #expect(context("web1", .local).address == nil)
  }

  @Test func `is told in the log as it was stated, also where it is no place`() throws {
    for (origin, text) in [
      (.address(try #require(NumericAddress([127, 0, 0, 1]))), "127.0.0.1"), (.unknown, "unknown"),
    ] as [(LoginQuestion.StatedOrigin, String)] {
      let question = LoginQuestion(
        name: Array("alice".utf8), service: Array("sshd".utf8), origin: origin, policy: Policy(),
        millisecondsLeft: 1, verb: .enrolled)
      let line = LogLine.outcome(.refused(.notEnrolled), of: question)
      #expect(String(decoding: line.bytes, as: UTF8.self).contains("origin=\(text) "))
    }
  }
}
