import Foundation
import Glibc
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite struct `The copy of the keys of a fleet` {
  private let copy: KeyBackup
  private let passphrase: Secret

  init() throws {
    copy = KeyBackup(
      key: try secret((0..<36).map { UInt8($0) }), identity: try secret("a key in PEM\n"))
    passphrase = try secret("correct horse battery staple")
  }

  private func fault(_ text: [UInt8], _ passphrase: Secret) -> KeyBackup.Fault? {
    do throws(KeyBackup.Fault) {
      _ = try KeyBackup.open(text, under: passphrase)
      return nil
    } catch {
      return error
    }
  }

  @Test func `opens under its passphrase alone, whatever is around it`() throws {
    let text = try copy.sealed(under: passphrase, cost: 10)
    let inMail = Array("Dear safe,\r\n\n".utf8) + text + Array("\nyours\n".utf8)
    for text in [text, inMail] {
      let again = try KeyBackup.open(text, under: passphrase)
      #expect(bytes(again.key) == bytes(copy.key))
      #expect(bytes(again.identity) == bytes(copy.identity))
    }
    #expect(fault(text, try secret("correct horse battery stapl")) == .wrongPassphrase)
    #expect(fault(text, try secret("")) == .wrongPassphrase)
  }

  @Test func `is another text each time, and shows neither key`() throws {
    let (one, two) = (
      try copy.sealed(under: passphrase, cost: 10), try copy.sealed(under: passphrase, cost: 10)
    )
    #expect(one != two)
    let digits = String(decoding: one, as: UTF8.self).replacingOccurrences(of: "\n", with: "")
    #expect(!digits.contains("000102030405"))
    #expect(!digits.contains("61206b6579"))
  }

  @Test func `does not open where one digit is another one or missing`() throws {
    let text = try copy.sealed(under: passphrase, cost: 10)
    let digits = text.indices.filter { isDigit(text[$0]) && text[$0] != 0x2d }
    for index in digits.dropFirst(40) where index % 7 == 0 {
      var other = text
      other[index] = other[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
      #expect(fault(other, passphrase) != nil, "\(index)")
      var lacking = text
      lacking.remove(at: index)
      #expect(fault(lacking, passphrase) == .notACopy, "\(index)")
    }
  }

  private func isDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
  }

  @Test func `is not taken for one of a later version`() throws {
    var text = try copy.sealed(under: passphrase, cost: 10)
    let start = try #require(text.firstIndex(of: 0x0a)) + 1
    #expect(text[start..<start + 4] == Array("010a".utf8)[...])
    text[start + 1] = UInt8(ascii: "2")
    #expect(fault(text, passphrase) == .otherForm)
    for text in ["", "hello", "-----BEGIN SALLYPORT FLEET KEY-----\n00\n"] {
      #expect(fault(Array(text.utf8), passphrase) == .notACopy)
    }
  }
}

@Suite struct `A file of keys` {
  private let directory: TemporaryDirectory
  private var path: String { directory.path + "/key" }

  init() throws { directory = try TemporaryDirectory() }

  // decisive
  @Test func `is made once, its owner's alone, and left as it is`() throws {
    let content = try secret("one")
    try PrivateFile.make(path, content)
    try PrivateFile.make(path, content)
    #expect(bytes(try PrivateFile.read(path)) == Array("one".utf8))
    #expect(throws: PrivateFile.Fault.exists) { try PrivateFile.make(path, secret("two")) }
    #expect(bytes(try PrivateFile.read(path)) == Array("one".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["key"])
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test func `is made over what a crash left beside it`() throws {
    try Data([1]).write(to: URL(fileURLWithPath: path + ".new"))
    try PrivateFile.make(path, secret("one"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["key"])
  }

  @Test(arguments: [0, 1, 35, 37, 5000])
  func `that is too short or too long for a fleet's key is named as damaged`(count: Int) throws {
    try FleetKey.make(at: path)
    #expect(try FleetKey.read(at: path).id >= 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["key"])
    try Data(repeating: 7, count: count).write(to: URL(fileURLWithPath: path))
    try allow(0o600)
    #expect(throws: FleetKey.FileFault(path: path, fault: .damaged, isNext: false)) {
      try FleetKey.read(at: path)
    }
    #expect(throws: PrivateFile.Fault.exists) { try FleetKey.make(at: path) }
    try allow(0o640)
    #expect(throws: FleetKey.FileFault(path: path, fault: .unsafe, isNext: false)) {
      try FleetKey.read(at: path)
    }
  }

  @Test func `is not read where others may, nor through a link`() throws {
    try PrivateFile.make(path, secret("one"))
    try allow(0o640)
    #expect(throws: PrivateFile.Fault.unsafe) { try PrivateFile.read(path) }
    #expect(throws: PrivateFile.Fault.unsafe) { try PrivateFile.make(path, secret("one")) }
    try allow(0o600)
    try FileManager.default.createSymbolicLink(
      atPath: path + ".link", withDestinationPath: path)
    #expect(throws: PrivateFile.Fault.system("open", errno: ELOOP)) {
      try PrivateFile.read(path + ".link")
    }
  }

  private func allow(_ mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
  }
}
