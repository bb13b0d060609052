import Glibc

/// The fleet in the text form of Prometheus, for a file that node_exporter's textfile collector
/// reads.
package struct FleetMetrics: Sendable {
  package let text: String

  /// `status`: nil if the database cannot be asked, which the file says too: an old file would say
  /// that all is well.
  package init(_ status: FleetStatus?) {
    var metrics = Metrics("sallyport_fleet")
    func add(_ what: String, _ help: String, _ values: [Metrics.Value]) {
      metrics.add(what, .gauge, help: help, values)
    }
    add("written_seconds", "When this was written, since 1970.", [("", "\(time(nil))")])
    add("up", "1 if the database can be reached.", [("", status == nil ? "0" : "1")])
    if let status {
      let facts = status.facts
      add("users", "Users who have a record.", facts.users.map { [("", "\($0)")] } ?? [])
      add("distrusts", "Invalidations of codes after data loss.", [("", "\(facts.losses)")])
      add("waiting_saves", "Saves that wait for a standby.", [("", "\(facts.waiting)")])
      add(
        "synchronous_standbys", "Synchronous standbys that are connected.",
        facts.standbys.map { [("", "\($0)")] } ?? [])
      add(
        "certificate_seconds", "Time until a certificate of verifiers or database expires.",
        facts.certificate.map { [("", "\($0)")] } ?? [])
      add(
        "verifier_silent_seconds", "Time since a verifier was last heard from.",
        status.verifiers.map { (Self.label("verifier", $0.name), "\($0.silent)") })
      add(
        "verifier_clock_offset_seconds", "Difference of a verifier's clock and the database's.",
        status.verifiers.compactMap { one in
          one.offset.map { (Self.label("verifier", one.name), "\(Double($0) / 1000)") }
        })
      add(
        "host_unseen_seconds", "Time since a host was last seen.",
        status.hosts.compactMap { one in
          one.unseen.map { (Self.label("host", one.name), "\($0)") }
        })
      add(
        "host_closed", "1 if codes of a host are accepted from known places alone.",
        status.hosts.map { (Self.label("host", $0.name), $0.isClosed ? "1" : "0") })
      add(
        "outcomes_of_a_day", "Logins of the last day by outcome.",
        status.outcomes.map { (Self.label("outcome", $0.word), "\($0.count)") })
      add(
        "event_days", "For how many days to come the events have parts.",
        [("", "\(facts.eventDays ?? 0)")])
      let kinds = Dictionary(grouping: status.warnings, by: \.what).sorted { $0.key < $1.key }
      add(
        "warnings", "Warnings of status by their keyword.",
        kinds.map { (Self.label("what", $0.key), "\($0.value.count)") })
    }
    text = metrics.text
  }

  private static func label(_ name: String, _ value: String) -> String {
    "{\(name)=\(quoted(value))}"
  }

  /// As `Metrics.write`.
  package func write(to path: String) -> Int32 { Metrics.write(text, to: path) }
}
