import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportDoctor
import SallyportSupport
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI

/// Verifiers that have some people, or answer as they are told.
private final class RosterLine: FleetVerifiers {
  let enrolled: Set<String>
  let fault: TransportFault?
  let answer: VerifierAnswer?
  let asked = Locked<[Int]>([])

  init(_ enrolled: Set<String> = [], fault: TransportFault? = nil, answer: VerifierAnswer? = nil) {
    (self.enrolled, self.fault, self.answer) = (enrolled, fault, answer)
  }

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    if let fault { throw fault }
    guard let frame = made(milliseconds), kind == .management,
      let request = RosterRequest.decode(frame)
    else { return .notServed }
    asked.withLock { $0.append(request.names.count) }
    if let answer { return answer }
    let entries = request.names.map { name in
      RosterAnswer.Entry(
        enrolled.contains(name.text) ? .enrolled(Factors()) : .notEnrolled, .exempt(until: nil))
    }
    return VerifierAnswer(to: .management, RosterAnswer.told(entries).encoded() ?? [])
  }
}

@Suite struct `What the fleet says of people` {
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")

  private func roster(
    _ names: [String], by line: RosterLine, enrolls: Bool = true
  ) throws -> FleetRoster {
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try becomeHost(in: own.path, enrolls: enrolls)
    var place = FleetEnvironment.nowhere
    place.directory = own.path
    place.asking = { _, _, _ in line }
    return place.roster(of: try names.map { try #require(UserName(Array($0.utf8))) })
  }

  // decisive
  @Test func `is told of all of them, 200 at a time`() throws {
    let names = (0..<450).map { "user\($0)" }
    let line = RosterLine(["user0", "user199", "user200", "user449"])
    guard case .told(let people) = try roster(names, by: line) else {
      Issue.record("not told")
      return
    }
    #expect(line.asked.withLock { $0 } == [200, 200, 50])
    #expect(people.map(\.name.text) == names)
    let enrolled = people.filter { $0.place == .enrolled(Factors()) }.map(\.name.text)
    #expect(enrolled == ["user0", "user199", "user200", "user449"])
    #expect(people.allSatisfy { $0.level == .exempt(until: nil) })
    #expect(try roster([], by: RosterLine(fault: .away)) == .told([]))
  }

  @Test(
    arguments: [
      (.away, "no verifier can be reached"), (.unknown, "the verifier did not answer"),
      (.revoked, "this host was revoked"), (.stranger, "no verifier knows this host's key"),
      (.unpinned, "the server at the verifiers' addresses has an unexpected key"),
    ] as [(TransportFault, String)])
  func `is silence where no answer comes, with the reason`(_ fault: TransportFault, _ why: String)
    throws
  {
    #expect(try roster(["alice"], by: RosterLine(fault: fault)) == .silent(why))
  }

  private static let old =
    "the verifier is of an older version, or others are: upgrade them all"

  @Test(
    arguments: [
      (VerifierAnswer(to: .management, []), old), (.notServed, old),
      (.databaseAway, "the verifier's database does not answer"),
      (
        VerifierAnswer(to: .management, MoveAnswer.trouble.encoded() ?? []),
        "the verifier cannot read what the fleet has"
      ),
      (
        VerifierAnswer(to: .management, [1, 0x5a, 1, 0, 0x99]),
        "unrecognized answer from the verifier; check its version"
      ),
      (
        VerifierAnswer(
          to: .management,
          RosterAnswer.told([.init(.notEnrolled, nil), .init(.notEnrolled, nil)]).encoded() ?? []),
        "unrecognized answer from the verifier; check its version"
      ),
    ] as [(VerifierAnswer, String)])
  func `is silence where the answer is none`(_ answer: VerifierAnswer, _ why: String) throws {
    let line = RosterLine(answer: answer)
    #expect(try roster((0..<300).map { "user\($0)" }, by: line) == .silent(why))
    // The next one would be none either.
    #expect(line.asked.withLock { $0 } == [200])
  }

  // decisive
  @Test func `is kept from a host that may not enroll`() throws {
    let line = RosterLine(["alice"])
    #expect(try roster(["alice", "bob"], by: line, enrolls: false) == .keeps)
    #expect(line.asked.withLock { $0 } == [])
    // Since the host joined its row may have been changed.
    let refusing = RosterLine(
      answer: VerifierAnswer(to: .management, MoveAnswer.notAllowed.encoded() ?? []))
    #expect(try roster(["alice"], by: refusing) == .keeps)
  }

  @Test func `is silence on a machine of no fleet`() throws {
    let name = try #require(UserName(Array("alice".utf8)))
    guard case .silent(let why) = FleetEnvironment.nowhere.roster(of: [name]) else {
      Issue.record("not silent")
      return
    }
    #expect(why.contains("fleet"), "\(why)")
  }
}
