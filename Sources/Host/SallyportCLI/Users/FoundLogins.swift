import FoundationEssentials
import Glibc
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport

/// The logins that the log of the system tells, in order of time: from the journal those lines
/// alone of which the journal itself says that a host of root's wrote them; without a journal from
/// files, into which anybody can have lines written.
struct FoundLogins {
  struct Login {
    let time: UnixTime
    let line: LoginLine
    /// Whether a known program of root's has written it, for certain.
    var isTrusted = false
  }

  private(set) var logins: [Login] = []
  /// The users, as a line has them; nil: everybody.
  private let fields: [String]?
  /// Whether nobody but root can have written them.
  private(set) var isOfRoot = true
  /// What was not read, or is not shown.
  private(set) var warnings: [String] = []

  /// More lines of a kind are not read, the oldest first.
  private static let most = 2000
  /// A file's last bytes.
  private static let longestText = 4 << 20
  private static let folders = ["/run/log/journal", "/var/log/journal"]
  private static let files = [
    "/var/log/auth.log.1", "/var/log/auth.log", "/var/log/secure.1", "/var/log/secure",
  ]
  /// Programs that load PAM as root, and our own.
  private static let hosts: Set<String> = [
    "sshd", "sshd-session", "sshd-auth", "sudo", "sudo-rs", "su", "su-rs", "login", "runuser",
    "cockpit-session", "polkit-agent-helper-1", "gdm-session-worker", "lightdm", "sddm-helper",
    "xdm", "greetd", "systemd-run0", "cron", "crond", "atd", "openvpn", "radiusd", "freeradius",
    "dovecot-auth", "auth", "vsftpd", "proftpd", "xrdp-sesman", "sallyportd",
  ]

  /// Of these users, or of everybody.
  init(on machine: Machine, since start: UnixTime, now: UnixTime, of names: [UserName]?) {
    fields = names.map { $0.map { Act.field($0.bytes) } }
    let hasJournal = FoundLogins.folders.contains { !machine.paths("\($0)/*/*.journal").isEmpty }
    if hasJournal { readJournal(machine, start) } else { readFiles(machine, start, now) }
    let ordered = logins.enumerated().sorted {
      ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
    }
    logins = FoundLogins.once(ordered.map(\.element))
  }

  /// Names as a line has them, where a long one is cut.
  private func concerns(_ line: LoginLine) -> Bool {
    fields?.contains(Act.field(line.user)) != false
  }

  // MARK: the journal

  /// A line of `journalctl -o json`. What begins with `_` is the journal's own word.
  private struct Entry: Decodable {
    let message, user, moment: String
    /// nil: it had ended before the journal looked, as a child of sshd may have.
    let program: String?
    /// The program's own word for itself.
    let identifier: Word?

    enum CodingKeys: String, CodingKey {
      case message = "MESSAGE"
      case program = "_EXE"
      case identifier = "SYSLOG_IDENTIFIER"
      case user = "_UID"
      case moment = "__REALTIME_TIMESTAMP"
    }

    /// nil where it is no text: anybody can name his sudo so.
    struct Word: Decodable {
      let text: String?

      init(from decoder: any Decoder) throws {
        text = try? decoder.singleValueContainer().decode(String.self)
      }
    }

    var path: String? {
      program.map { $0.hasSuffix(" (deleted)") ? String($0.dropLast(10)) : $0 }
    }
  }

  /// How many lines are read counts only those that can be shown, and refusals, which anybody can
  /// cause, apart: so that nobody pushes a login out of them.
  private mutating func readJournal(_ machine: Machine, _ start: UnixTime) {
    let words = [
      "journalctl", "--quiet", "--no-pager", "--reverse", "--output=json",
      "--output-fields=MESSAGE,_EXE,_UID,SYSLOG_IDENTIFIER", "--since=@\(start.seconds)",
      "--lines=\(FoundLogins.most)",
    ]
    let matches = ["_UID=0", "SYSLOG_FACILITY=10"]
    let version = machine.run(["journalctl", "--version"]).value?.output.utf8 ?? "".utf8
    // It may be built without patterns: then more lines are read than are ours.
    let lacksPatterns = version.split { $0 == 0x20 || $0 == 0x0a }.contains {
      $0.elementsEqual("-PCRE2".utf8)
    }
    var lines: [[UInt8]] = []
    for kind in lacksPatterns ? [.any] : [LineKind.accepted, .refused] {
      let pattern =
        kind == .any ? [] : ["--case-sensitive=true", "--grep=\(kind.pattern(of: fields))"]
      guard let value = machine.run(words + pattern + matches).value else {
        warnings.append("the journal cannot be read: no logins are shown")
        return
      }
      let found = value.output.utf8.split(separator: 0x0a)
      if value.status == -1 || found.count >= FoundLogins.most || value.isCut {
        warnings.append(
          "the journal has more than is read: only the newest \(kind.rawValue) are shown")
      }
      lines += found.map { Array($0) }
    }
    take(lines)
  }

  private mutating func take(_ lines: [[UInt8]]) {
    let decoder = JSONDecoder()
    var (strangers, ended, hidden): (Set<String>, Int, Int) = ([], 0, 0)
    var found: [(moment: Int64, login: Login)] = []
    for text in lines {
      // A message that is no text, or is too long for it, is none of ours.
      guard let entry = try? decoder.decode(Entry.self, from: Data(text)), entry.user == "0",
        let moment = Int64(entry.moment)
      else { continue }
      let path = entry.path
      let name = path.map { $0.split(separator: "/").last.map(String.init) ?? "" }
      // None but root's processes gave themselves that name: the uid is the kernel's.
      let program = name ?? entry.identifier?.text ?? ""
      guard
        let line = LoginLine(Array(entry.message.utf8), isOfService: program == "sallyportd"),
        concerns(line)
      else { continue }
      guard FoundLogins.hosts.contains(program), path?.hasPrefix("/") != false else {
        if let path { strangers.insert(path) } else { hidden += 1 }
        continue
      }
      if path == nil { ended += 1 }
      let time = UnixTime(moment / 1_000_000)
      found.append((moment, Login(time: time, line: line, isTrusted: path != nil)))
    }
    // Of two of the same microsecond the newer one came first.
    logins = found.enumerated().sorted {
      ($0.element.moment, $1.offset) < ($1.element.moment, $0.offset)
    }.map(\.element.login)
    let late = "of programs of root that had ended before the journal looked which they were"
    if hidden > 0 { warnings.append("not shown: \(counted(hidden, "line")) \(late)") }
    if ended > 0 {
      warnings.append(
        "\(counted(ended, "line")) \(late): shown by the name that they gave themselves")
    }
    for path in strangers.sorted().prefix(5) {
      warnings.append(
        "not shown: lines of \(printable(path.utf8, limit: 255)), which is no known host of PAM")
    }
  }

  // MARK: files

  private mutating func readFiles(_ machine: Machine, _ start: UnixTime, _ now: UnixTime) {
    isOfRoot = false
    var read: [String] = []
    for path in FoundLogins.files {
      switch machine.end(of: path, limit: FoundLogins.longestText) {
      case .absent: continue
      case .unseen(let reason): warnings.append(printable(reason.utf8, limit: 300))
      case .seen(let bytes):
        read.append(path)
        if bytes.count == FoundLogins.longestText {
          warnings.append("\(path): only its last lines were read")
        }
        logins += bytes.split(separator: 0x0a).compactMap { text in
          Login(fileLine: Array(text), before: now)
        }.filter { $0.time >= start && concerns($0.line) }
      }
    }
    guard !read.isEmpty else {
      warnings.append("there is no journal, no /var/log/auth.log and no /var/log/secure: no logins")
      return
    }
    warnings.append(
      "logins are from \(read.joined(separator: ", ")): anybody on this machine can write "
        + "such lines"
    )
  }

  /// What the module says and the service says once more, for su and sudo, is one login.
  private static func once(_ all: [Login]) -> [Login] {
    all.indices.filter { index in
      guard all[index].line.isOfService else { return true }
      let own = all[index]
      let near = max(0, index - 8)..<min(all.count, index + 9)
      return !all[near].contains { other in
        !other.line.isOfService && other.line.user == own.line.user
          && other.line.service == own.line.service && other.line.result == own.line.result
          && abs(other.time.seconds - own.time.seconds) <= 2
      }
    }.map { all[$0] }
  }
}

/// Lines that are asked for together.
private enum LineKind: String {
  case accepted = "logins and enrollments"
  case refused = "refusals"
  case any = "lines"

  /// For journalctl. Anybody can have a line written that matches, so it decides nothing.
  func pattern(of fields: [String]?) -> String {
    let kinds =
      self == .refused
      ? "refused: |denied: "
      : "(backup )?code accepted: |pass accepted: |not asked: this origin is remembered: |"
        + "enrollment changed in the login: "
    // With the user last, others may stand before: a value has no blank.
    let users = (fields ?? []).map { field in
      field.utf8.map { byte in
        let text = String(UnicodeScalar(byte))
        return isWordCharacter(byte) ? text : "\\" + text
      }.joined()
    }
    let ours = "^(pam_sallyport[(][^)]*[)]: )?(\(kinds))"
    return users.isEmpty ? ours : "\(ours)(.* )?user=(\(users.joined(separator: "|")))([ :]|$)"
  }

  private func isWordCharacter(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }
}

extension FoundLogins.Login {
  /// `Nov 28 09:12:00 web1 sshd[12]: pam_sallyport(…`, or with a time as of RFC 3339. nil for
  /// anything else.
  fileprivate init?(fileLine text: [UInt8], before now: UnixTime) {
    var rest = text[...]
    func word() -> [UInt8] {
      rest = rest.drop { $0 == 0x20 }
      let word = Array(rest.prefix { $0 != 0x20 })
      rest = rest.dropFirst(word.count)
      return word
    }
    let first = word()
    let time =
      first.count > 3
      ? FileTime.internet(first) : FileTime.traditional([first, word(), word()], before: now)
    _ = word()
    let tag = word()
    let program = Array(tag.prefix { $0 != 0x5b && $0 != 0x3a })
    let isOfService = program == Array("sallyportd".utf8)
    guard let time, tag.last == 0x3a,
      let line = LoginLine(Array(rest.dropFirst()), isOfService: isOfService)
    else { return nil }
    self.init(time: time, line: line)
  }
}

/// The time of a line in a log file.
private enum FileTime {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ].map { Array($0.utf8) }

  /// `2026-11-28T09:12:00.123456+01:00`
  static func internet(_ text: [UInt8]) -> UnixTime? {
    guard let local = UnixTime(internetClock: text) else { return nil }
    var rest = text.dropFirst(19)
    if rest.first == 0x2e {
      rest = rest.dropFirst().drop { (0x30...0x39).contains($0) }
    }
    if Array(rest) == [0x5a] { return local }
    let zone = Array(rest)
    guard zone.count == 6, zone[0] == 0x2b || zone[0] == 0x2d, zone[3] == 0x3a,
      let hours = decimal(Array(zone[1..<3])), let minutes = decimal(Array(zone[4..<6])),
      hours < 24, minutes < 60
    else { return nil }
    let offset = Int64(hours * 3600 + minutes * 60)
    return UnixTime(local.seconds - (zone[0] == 0x2b ? offset : -offset))
  }

  /// `Nov 28 09:12:00`, in the time zone of this machine, in the year that ends now.
  static func traditional(_ words: [[UInt8]], before now: UnixTime) -> UnixTime? {
    let clock = words[2].split(separator: 0x3a).map { decimal(Array($0)) }
    guard let month = months.firstIndex(of: words[0]), let day = decimal(words[1]), day < 32,
      clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2],
      hour < 24, minute < 60, second < 61, let today = CalendarDate(now)
    else { return nil }
    for year in [today.year, today.year - 1] {
      // SAFETY: a structure of numbers and a text that is not used; the pointer lives for the call.
      var fields = unsafe tm()
      unsafe (fields.tm_year, fields.tm_mon) = (Int32(year - 1900), Int32(month))
      unsafe (fields.tm_mday, fields.tm_hour) = (Int32(day), Int32(hour))
      unsafe (fields.tm_min, fields.tm_sec, fields.tm_isdst) = (Int32(minute), Int32(second), -1)
      let time = unsafe UnixTime(Int64(mktime(&fields)))
      if time.seconds <= now.seconds + 86_400 { return time }
    }
    return nil
  }
}

extension UnixTime {
  /// What a time as of RFC 3339 begins with, without its zone.
  fileprivate init?(internetClock text: [UInt8]) {
    guard text.count >= 20, text[10] == 0x54, text[13] == 0x3a, text[16] == 0x3a,
      let day = UnixTime(date: Array(text[..<10])), let hour = decimal(Array(text[11..<13])),
      let minute = decimal(Array(text[14..<16])), let second = decimal(Array(text[17..<19])),
      hour < 24, minute < 60, second < 61
    else { return nil }
    self.init(day.seconds + Int64(hour * 3600 + minute * 60 + second))
  }
}
