import Glibc

/// The fleet in the text form of Prometheus, for a file that node_exporter's textfile collector
/// reads.
package struct FleetMetrics: Sendable {
  package let text: String

  /// `status`: nil where the database cannot be asked, which is told too: an old file would say
  /// that all is well.
  package init(_ status: FleetStatus?) {
    var metrics = Metrics("sallyport_fleet")
    func add(_ what: String, _ help: String, _ values: [Metrics.Value]) {
      metrics.add(what, .gauge, help, values)
    }
    add("up", "Whether the database can be asked.", [("", status == nil ? "0" : "1")])
    if let status {
      let facts = status.facts
      add("users", "People of whom something is kept.", [("", "\(facts.users)")])
      add("distrusts", "How often what it has was distrusted.", [("", "\(facts.losses)")])
      add("waiting_saves", "Saves that wait for a standby.", [("", "\(facts.waiting)")])
      add(
        "synchronous_standbys", "Synchronous standbys that are there.",
        facts.standbys.map { [("", "\($0)")] } ?? [])
      add(
        "certificate_seconds", "Until a certificate between verifiers and the database ends.",
        facts.certificate.map { [("", "\($0)")] } ?? [])
      add(
        "verifier_silent_seconds", "Since a verifier last said something.",
        status.verifiers.map { (Self.label("verifier", $0.name), "\($0.silent)") })
      add(
        "verifier_clock_offset_seconds", "A verifier's clock from the database's.",
        status.verifiers.compactMap { one in
          one.offset.map { (Self.label("verifier", one.name), "\(Double($0) / 1000)") }
        })
      add(
        "host_unseen_seconds", "Since a host was last seen.",
        status.hosts.compactMap { one in
          one.unseen.map { (Self.label("host", one.name), "\($0)") }
        })
      add(
        "outcomes_of_a_day", "Logins of the last day by what was judged.",
        status.outcomes.map { (Self.label("outcome", $0.word), "\($0.count)") })
      add("warnings", "What status warns of.", [("", "\(status.warnings.count)")])
    }
    text = metrics.text
  }

  private static func label(_ name: String, _ value: String) -> String {
    "{\(name)=\(quoted(value))}"
  }

  /// As `Metrics.write`.
  package func write(to path: String) -> Int32 { Metrics.write(text, to: path) }
}

/// The text form of Prometheus.
struct Metrics {
  /// The labels within braces, or nothing.
  typealias Value = (labels: String, value: String)

  enum Kind: String { case gauge, counter, histogram }

  private let prefix: String
  private var lines: [String] = []

  /// `prefix`: of all names.
  init(_ prefix: String) { self.prefix = prefix }

  var text: String { lines.joined(separator: "\n") + "\n" }

  /// Nothing where there are no values. Those of a histogram have what follows its name in front of
  /// their labels.
  mutating func add(_ what: String, _ kind: Kind, _ help: String, _ values: [Value]) {
    if values.isEmpty { return }
    let name = "\(prefix)_\(what)"
    lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(kind.rawValue)"]
    lines += values.map { "\(name)\($0.labels) \($0.value)" }
  }

  /// Puts a text in a file's place, whole or not at all, for everybody to read. 0 or an errno.
  static func write(_ text: String, to path: String) -> Int32 {
    let new = path + ".new"
    // SAFETY: the C strings and the bytes live for the calls; so for those below.
    let file = unsafe open(new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard file >= 0 else { return errno }
    let bytes = Array(text.utf8)
    let done = unsafe Glibc.write(file, bytes, bytes.count)
    let fault = done == bytes.count ? 0 : done < 0 ? errno : ENOSPC
    _ = fchmod(file, 0o644)
    guard close(file) == 0, fault == 0 else { return fault == 0 ? errno : fault }
    return unsafe rename(new, path) == 0 ? 0 : errno
  }
}
