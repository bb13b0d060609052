import ArgumentParser
import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem
import SallyportVerifier

struct Backup: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Look at a backup of the database.", subcommands: [Check.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Open a dump with the fleet's key: how many people, how old, complete or not.",
      discussion: """
        Nothing of the dump is run, and no database is asked. For a dump of before a change of the
        key, name a directory with the key of its time:
          sallyport-verifier key take COPY --directory DIRECTORY
        The status is 1 where the dump is not complete.
        """)

    @OptionGroup var common: Common

    @Argument(help: "A dump by pg_dump, as SQL or by its option -Fc.")
    var file: String

    func run() throws {
      // As the user who types it: the dump may be where the owner of the directory may not read.
      let dump = try rethrow(
        { () throws(SystemError) in try OpenFile(file, O_RDONLY) },
        as: { Failure("\(shown): \(errnoDescription($0.number))") })
      try common.actAsOwner()
      let (key, now) = (try common.readKey(), try Clock.now())
      let name = HostName.label.text
      let check = try rethrow(
        { () throws(StoreTrouble) in
          try BackupCheck(key, verifier: name, memory: common.memory(of: name))
        }, as: { _ in Failure("getrandom failed") })
      let report = try rethrow(
        { () throws(Dump.Fault) in try BackupCheck.read(dump, check) },
        as: { Failure("\(shown): \($0.sentence)") })
      for line in report.lines(now: now.seconds, verifier: name) { print(line) }
      guard report.isComplete else {
        throw Failure(
          "\(shown): not complete:\n" + report.flaws.joined(separator: "\n") + "\n" + Self.hint)
      }
      print("complete")
    }

    private var shown: String { printable(file.utf8, limit: 4096) }

    private static let hint =
      "hint: make another one, pg_dump -Fc; sallyport-verifier key take COPY --directory DIRECTORY "
      + "for one of another key"
  }
}

extension BackupReport {
  fileprivate func lines(now: Int64, verifier: String) -> [String] {
    var lines = ["people: \(enrolled) enrolled, \(others) not", "hosts: \(hosts)"]
    if let schema {
      let isOlder = schema < Schema.number
      lines.append(
        "schema: \(schema)" + (isOlder ? ": after a restore, sallyport-verifier migrate" : ""))
    }
    lines.append("policy: \(policy.map { "\($0)" } ?? "none")")
    if let made, let date = CalendarDate(UnixTime(made), inUTC: true) {
      lines.append("last save: \(date.internetText), \(Self.age(now - made))")
    }
    if let later {
      lines.append(
        "since then \(verifier) has seen the database \(later) times, once in two seconds")
    }
    return lines
  }

  /// `seconds`: since then.
  private static func age(_ seconds: Int64) -> String {
    switch seconds {
    case ..<0: "which is to come: compare the clocks"
    case ..<7200: "\(seconds / 60) minutes ago"
    case ..<172_800: "\(seconds / 3600) hours ago"
    case _: "\(seconds / 86_400) days ago"
    }
  }
}

extension Dump.Fault {
  fileprivate var sentence: String {
    switch self {
    case .system(let number): errnoDescription(number)
    case .otherForm:
      "neither SQL of pg_dump nor its custom form\nhint: pg_dump -Fc; uncompress a compressed file "
        + "before"
    case .noProgram:
      "pg_restore is missing, which reads this form\nhint: apt-get install postgresql-client"
    case .program(let status):
      "pg_restore ended with status \(status): the dump is damaged or cut off, or of a later "
        + "PostgreSQL\nhint: make another one, pg_dump -Fc"
    }
  }
}
