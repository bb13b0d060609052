import FleetProtocol
package import SallyportSupport

/// What a host knows of its fleet, from `/etc/security/sallyport-fleet.conf`.
package struct FleetFile: Equatable, Sendable {
  package static let directory = "/etc/security"
  package static let name = "sallyport-fleet.conf"
  package static let keyName = "sallyport-fleet.key"
  static let mostVerifiers = 8
  static let mostPins = 2

  /// This host's name in the fleet, for people: its key identifies it.
  package var host: String
  /// Whether this host may change enrollments of the fleet.
  package var enrolls: Bool
  /// 1 to 8.
  package var verifiers: [VerifierAddress]
  /// 1 or 2, of the verifiers' key: the second is the one that comes next.
  package var pins: [Pin]

  package init(host: String, enrolls: Bool, verifiers: [VerifierAddress], pins: [Pin]) {
    self.host = host
    self.enrolls = enrolls
    self.verifiers = verifiers
    self.pins = pins
  }

  /// The text of the file.
  package func written() -> String {
    var lines = [
      "# Written by sallyport fleet join; removed by sallyport fleet leave.",
      "host = \(host)", "enrolls = \(enrolls ? "yes" : "no")",
    ]
    lines += verifiers.map { "verifier = \($0.text)" }
    lines += pins.map { "pin = \($0.hex)" }
    return lines.joined(separator: "\n") + "\n"
  }
}

/// Why the file of a fleet cannot be used.
package struct FleetFileFault: Error, Equatable {
  /// What is wrong with it.
  package enum Reason: Equatable, Sendable {
    /// `unsafe`: not a regular file of root's or the effective user's, or one that others may
    /// change; `damaged`: too long.
    case file(PrivateFile.Fault)
    /// Not a key, `=` and a value; or bytes that are not printable ASCII.
    case notASetting
    case unknownKey(String)
    /// A key that stands once, or a value that stands twice.
    case twice(String)
    case notAName
    case notYesOrNo
    case notAnAddress
    case notAPin
    /// More verifiers or pins than there may be.
    case tooMany(String)
    /// No line has this key.
    case missing(String)
  }

  package let path: String
  /// From 1; nil where it is the whole file's.
  package let line: Int?
  package let reason: Reason

  /// Whether there is no such file: this host is in no fleet.
  package var isAbsent: Bool { reason == .file(.absent) }
}

// MARK: reading

extension FleetFile {
  /// Any bytes give a file, or an error with the line and what to do.
  package static func parse(_ bytes: [UInt8], path: String) throws(FleetFileFault) -> FleetFile {
    var reader = FleetFileReader()
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      if let reason = reader.take(line) {
        throw FleetFileFault(path: path, line: index + 1, reason: reason)
      }
    }
    guard let host = reader.host else { throw missing("host", path) }
    guard let enrolls = reader.enrolls else { throw missing("enrolls", path) }
    if reader.verifiers.isEmpty { throw missing("verifier", path) }
    if reader.pins.isEmpty { throw missing("pin", path) }
    return FleetFile(
      host: host, enrolls: enrolls, verifiers: reader.verifiers, pins: reader.pins)
  }

  private static func missing(_ key: String, _ path: String) -> FleetFileFault {
    FleetFileFault(path: path, line: nil, reason: .missing(key))
  }
}

/// The lines that were read until now.
private struct FleetFileReader {
  var host: String?
  var enrolls: Bool?
  var verifiers: [VerifierAddress] = []
  var pins: [Pin] = []

  /// nil where the line is right.
  mutating func take(_ line: ArraySlice<UInt8>) -> FleetFileFault.Reason? {
    guard line.allSatisfy({ (0x20...0x7e).contains($0) || $0 == UInt8(ascii: "\t") }) else {
      return .notASetting
    }
    let text = trimmed(line)
    if text.isEmpty || text.first == UInt8(ascii: "#") { return nil }
    guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { return .notASetting }
    let key = String(decoding: trimmed(text[..<equals]), as: UTF8.self)
    let value = String(decoding: trimmed(text[(equals + 1)...]), as: UTF8.self)
    return set(key, to: value)
  }

  private mutating func set(_ key: String, to value: String) -> FleetFileFault.Reason? {
    switch key {
    case "host":
      if host != nil { return .twice(key) }
      host = value
      return FleetHostName(Array(value.utf8)) == nil ? .notAName : nil
    case "enrolls":
      if enrolls != nil { return .twice(key) }
      enrolls = value == "yes"
      return value == "yes" || value == "no" ? nil : .notYesOrNo
    case "verifier":
      guard let address = VerifierAddress(value) else { return .notAnAddress }
      return add(address, to: &verifiers, FleetFile.mostVerifiers, key)
    case "pin":
      guard let pin = Pin(hex: value) else { return .notAPin }
      return add(pin, to: &pins, FleetFile.mostPins, key)
    case _: return .unknownKey(key)
    }
  }

  private func add<Value: Equatable>(
    _ value: Value, to values: inout [Value], _ most: Int, _ key: String
  ) -> FleetFileFault.Reason? {
    if values.contains(value) { return .twice(key) }
    if values.count == most { return .tooMany(key) }
    values.append(value)
    return nil
  }

  private func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == UInt8(ascii: "\t") }
    let start = text.drop(while: isBlank)
    guard let last = start.lastIndex(where: { !isBlank($0) }) else { return [] }
    return start[...last]
  }
}
