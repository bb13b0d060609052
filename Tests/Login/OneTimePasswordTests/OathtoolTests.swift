import Foundation
import OneTimePassword
import TestSupport
import Testing

/// One run of oathtool: a number of codes in a row of one secret.
private struct OathtoolCase {
  static let codes = 10

  let key: [UInt8]
  let parameters: CodeParameters
  /// A counter, or seconds since 1970.
  let start: UInt64

  init(using random: inout Seeded) {
    key = random.bytes(1...(random.pick([20, 32, 64, 65, 129, 200])))
    let digits = random.pick(Digits.allCases)
    // oathtool's HOTP knows SHA-1 alone.
    let isHOTP = Bool.random(using: &random)
    let algorithm = isHOTP ? .sha1 : random.pick(HashAlgorithm.allCases)
    let period = random.pick([30, 60, UInt32.random(in: 15...300, using: &random)])
    let type: AuthenticatorType = isHOTP ? .hotp : .totp(period: period)
    parameters =
      CodeParameters(type: type, algorithm: algorithm, digits: digits) ?? .standard
    let highest = isHOTP ? UInt64.max - 10 : random.pick([1 << 31, 1 << 34, 1 << 40])
    start = .random(in: 0...highest, using: &random)
  }

  var command: String {
    let key = key.map { String(format: "%02x", $0) }.joined()
    let common = "-d \(parameters.digits.rawValue) -w \(Self.codes - 1) \(key)"
    switch parameters.type {
    case .hotp: return "oathtool --hotp -c \(start) \(common)"
    case .totp(let period):
      return "oathtool --totp=\(parameters.algorithm.name) -s \(period)s -N @\(start) \(common)"
    }
  }

  func ours() throws -> [String] {
    let generator = try CodeGenerator(
      secret: secret(key), algorithm: parameters.algorithm, digits: parameters.digits)
    let first =
      switch parameters.type {
      case .hotp: start
      case .totp(let period): timeStep(at: Int64(start), period: period)
      }
    return try (0..<UInt64(Self.codes)).map {
      padded(try generator.code(at: first + $0), parameters.digits)
    }
  }
}

@Suite struct `oathtool` {
  /// One shell runs them all: a process per code would take minutes.
  // decisive
  @Test func `agrees on 12,000 codes of 1,200 random secrets`() throws {
    var random = Seeded(6238)
    let cases = (0..<1200).map { _ in OathtoolCase(using: &random) }
    let theirs = try shell(cases.map(\.command).joined(separator: "\n"))
    try #require(theirs.count == cases.count * OathtoolCase.codes)
    for (index, each) in cases.enumerated() {
      let lines = theirs.dropFirst(index * OathtoolCase.codes).prefix(OathtoolCase.codes)
      #expect(try each.ours() == Array(lines), "\(each.command)")
    }
    for algorithm in HashAlgorithm.allCases {
      let found = cases.filter { $0.parameters.algorithm == algorithm }.count
      #expect(found > 100)
    }
    let hotp = cases.filter { $0.parameters.type == .hotp }.count
    #expect((100...1100).contains(hotp))
  }

  /// The lines a script prints. Fails, rather than skips, if any command of it does.
  private func shell(_ script: String) throws -> [String] {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("oathtool-\(ProcessInfo.processInfo.processIdentifier).sh")
    try script.write(to: file, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-e", file.path]
    process.standardOutput = output
    try process.run()
    let lines = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "is oathtool installed?")
    return String(decoding: lines, as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
