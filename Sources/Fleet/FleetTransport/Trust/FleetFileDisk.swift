import Glibc
import SallyportCore

extension FleetFile {
  private static let longest = 16_384

  /// From `sallyport-fleet.conf` in `directory`. It must be a regular file of root's or the
  /// effective user's, which nobody else may change.
  package static func read(in directory: String = FleetFile.directory) throws(FleetFileFault)
    -> FleetFile
  {
    let path = directory + "/" + name
    return try parse(try bytes(at: path), path: path)
  }

  private static func bytes(at path: String) throws(FleetFileFault) -> [UInt8] {
    func fault(_ reason: FleetFileFault.Reason) -> FleetFileFault {
      FleetFileFault(path: path, line: nil, reason: reason)
    }
    // SAFETY: the C string lives for the call.
    let file = unsafe Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { throw fault(.system("open", errno: errno)) }
    defer { close(file) }
    var facts = stat()
    // SAFETY: filled within the call.
    guard unsafe fstat(file, &facts) == 0 else { throw fault(.system("fstat", errno: errno)) }
    guard facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == 0 || facts.st_uid == geteuid(),
      facts.st_mode & 0o022 == 0
    else { throw fault(.unsafe) }
    guard facts.st_size <= longest else { throw fault(.tooLong) }
    var bytes = [UInt8](repeating: 0, count: longest + 1)
    // SAFETY: as many bytes as the array has.
    let count = unsafe Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw fault(.system("read", errno: errno)) }
    guard count <= longest else { throw fault(.tooLong) }
    return Array(bytes.prefix(count))
  }
}

extension FleetFileFault {
  /// One sentence for people, with what to do.
  package var text: String {
    let place = line.map { "\(path):\($0): " } ?? "\(path): "
    return place + problem
  }

  private static let again = "run sallyport fleet join again"

  private var problem: String {
    switch reason {
    case .system(let call, let number):
      // SAFETY: a C string for any number, copied at once.
      unsafe "\(call): \(String(cString: strerror(number)))"
    case .unsafe: "not a file that only root can change (chown root, chmod 644)"
    case .tooLong: "too long: \(Self.again)"
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
