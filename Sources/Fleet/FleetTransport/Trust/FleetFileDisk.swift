import OneTimePassword
import SallyportCore
import SallyportSupport

extension FleetFile {
  private static let longest = 16_384

  /// From `sallyport-fleet.conf` in `directory`. It must be a regular file of root's or the
  /// effective user's, which nobody else may change.
  package static func read(in directory: String = FleetFile.directory) throws(FleetFileFault)
    -> FleetFile
  {
    let path = directory + "/" + name
    let whole = try rethrow(
      { () throws(PrivateFile.Fault) in
        try PrivateFile.read(path, upTo: longest, isPublic: true)
      }, as: { FleetFileFault(path: path, line: nil, reason: .file($0)) })
    return try parse(whole.bytes(in: 0..<whole.count), path: path)
  }
}

extension FleetFileFault {
  /// One sentence for people, with what to do.
  package var text: String {
    (line.map { "\(path):\($0): " } ?? "\(path): ") + problem
  }

  private static let again = "run sallyport fleet join again"

  private var problem: String {
    switch reason {
    case .file(.unsafe): "not a file that only root can change (chown root, chmod 644)"
    case .file(.damaged): "too long: \(Self.again)"
    case .file(let fault): fault.text
    case .notASetting: "not of the form key = value: correct or delete the line"
    case .unknownKey(let key):
      "\(shown(key)): unknown; host, enrolls, verifier and pin are known: delete the line"
    case .twice(let key): "\(key): stands twice: delete one of the lines"
    case .notAName: "host: not a name of letters, digits, \".\", \"-\" and \"_\": \(Self.again)"
    case .notYesOrNo: "enrolls: yes or no is expected"
    case .notAnAddress:
      "verifier: a numeric address is expected, such as 192.0.2.1:7353 or [2001:db8::1]:7353"
    case .notAPin: "pin: 64 hexadecimal digits are expected: \(Self.again)"
    case .tooMany(let key):
      "\(key): more than \(key == "pin" ? FleetFile.mostPins : FleetFile.mostVerifiers) lines"
    case .missing(let key): "has no line \(key) = …: \(Self.again)"
    }
  }

  private func shown(_ key: String) -> String {
    String(decoding: escaped(Array(key.utf8)), as: UTF8.self)
  }
}
