import FleetTransport
import Foundation
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService

@Suite struct `The files of a machine in its fleet` {
  private let own: TemporaryDirectory
  private let membership: Membership

  init() throws {
    own = try TemporaryDirectory()
    membership = Membership(in: own.path, seal: own.path + "/fleet.seal")
  }

  private func write(_ name: String) throws {
    let file = FleetFile(
      host: name, enrolls: false, verifiers: [try #require(VerifierAddress("127.0.0.1:1"))],
      pins: [try #require(Pin([UInt8](repeating: 7, count: 32)))])
    try? FileManager.default.removeItem(atPath: own.path + "/" + FleetFile.name)
    try Data(file.written().utf8).write(to: URL(fileURLWithPath: own.path + "/" + FleetFile.name))
  }

  private func fault() -> String? {
    do throws(MembershipFault) {
      _ = try membership.verifiers()
      return nil
    } catch {
      return error.text
    }
  }

  @Test func `count as they are now: without them it is in no fleet`() throws {
    #expect(fault()?.hasSuffix("this machine is in no fleet (sallyport fleet join)") == true)
    try write("one")
    #expect(fault()?.contains(FleetFile.keyName) == true)
    try Identity.make(at: own.path + "/" + FleetFile.keyName)
    #expect(fault() == nil)
    let first = try membership.verifiers() as? VerifierPool
    #expect(try membership.verifiers() as? VerifierPool === first)
    try write("two")
    #expect(try membership.verifiers() as? VerifierPool !== first)
    // Whatever was fetched counts from then on; what is no seal is none of the verifiers'.
    let second = try membership.verifiers() as? VerifierPool
    let seal = own.path + "/fleet.seal"
    try Data("none".utf8).write(to: URL(fileURLWithPath: seal))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: seal)
    #expect(fault()?.contains("fleet.seal: damaged") == true)
    try FileManager.default.removeItem(atPath: seal)
    #expect(fault() == nil)
    #expect(try membership.verifiers() as? VerifierPool !== second)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: own.path + "/" + FleetFile.keyName)
    #expect(fault()?.contains("chmod 600") == true)
    try FileManager.default.removeItem(atPath: own.path + "/" + FleetFile.name)
    #expect(fault()?.contains("in no fleet") == true)
  }
}
