import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

@Suite struct `The identity of a host or a fleet` {
  private func fault(_ path: String) -> PrivateFile.Fault? {
    do throws(PrivateFile.Fault) {
      _ = try Identity.read(at: path)
      return nil
    } catch { return error }
  }

  // decisive
  @Test func `is made once, and read with the same pin`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/identity.key"
    try Identity.make(at: path)
    let pin = try Identity.read(at: path).pin
    #expect(try Identity.read(at: path).pin == pin)
    #expect(Pin(hex: pin.hex) == pin)
    #expect(throws: PrivateFile.Fault.exists) { try Identity.make(at: path) }
    #expect(try Identity.read(at: path).pin == pin)
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    try Identity.make(at: path + "2")
    #expect(try Identity.read(at: path + "2").pin != pin)
  }

  @Test func `is one's own, and an Ed25519 key`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/identity.key"
    #expect(fault(path) == .absent)
    try Identity.make(at: path)
    // SAFETY: the C strings live for the calls.
    unsafe chmod(path, 0o640)
    #expect(fault(path) == .unsafe)
    unsafe chmod(path, 0o600)
    #expect(fault(path) == nil)
    let garbage = ["", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", p256]
    for text in garbage {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      #expect(fault(path) == .damaged, "\(text)")
    }
  }

  private let p256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBEhALIZhfSESgrz3
    2F7S0GrNOJDFVVORCCG+62mxAKihRANCAAQ8an4aM1WJhRDWmy2yp+cAOQzq/gCs
    tv/GdyoYpvJzTYLkcU//EtnG91F/dhC1+O58w63qM9DdwlKR9U/q9kX0
    -----END PRIVATE KEY-----
    """
}

@Suite struct `The frame of a host` {
  private func question(_ uid: UInt32?, isOwn: Bool) throws -> LoginQuestion {
    var question = LoginQuestion(
      name: Array("alice".utf8), service: Array("sshd".utf8), origin: .local, policy: Policy(),
      millisecondsLeft: 5000, verb: .level)
    question.account = Account(name: try #require(UserName(question.name)), uid: uid)
    (question.caller, question.isOwn) = (uid.map { $0 / 2 }, isOwn)
    return question
  }

  @Test(arguments: [nil, 0, 1000, UInt32.max - 1])
  func `is read as it was written`(_ uid: UInt32?) throws {
    let question = try question(uid, isOwn: uid != nil)
    let body = try #require(question.hostFrame())
    let read = try #require(LoginQuestion.decode(hostFrame: body))
    #expect((read.isOwn, read.account?.uid, read.caller) == (uid != nil, uid, question.caller))
    #expect(read.name == question.name)
  }

  @Test func `is nothing else`() throws {
    let whole = try #require(question(7, isOwn: true).hostFrame())
    for length in 0..<whole.count {
      let cut = try #require(whole.slice(0..<length))
      #expect(LoginQuestion.decode(hostFrame: cut) == nil)
    }
    for (index, byte) in [(0, 1), (0, 3), (1, 2)] as [(Int, UInt8)] {
      let other = try #require(whole.slice(0..<whole.count))
      other.set(index, to: byte)
      #expect(LoginQuestion.decode(hostFrame: other) == nil)
    }
  }
}
