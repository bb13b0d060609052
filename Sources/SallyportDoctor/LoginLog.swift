/// What the journal tells of logins that were accepted: a state that is older than one of them was
/// put back, by a snapshot or a backup.
enum LoginLog {
  /// The time of the newest accepted code of each user, in seconds since 1970.
  static func newest(of machine: Machine) -> [String: Int64] {
    // Root's programs only: everybody can write to the journal.
    let words = [
      "journalctl", "-q", "--no-pager", "-o", "short-unix", "-n", "5000", "_UID=0", "-g",
      "pam_sallyport.*accepted",
    ]
    guard let answer = machine.run(words).value, answer.status == 0 else { return [:] }
    return newest(in: answer.output)
  }

  /// `1795000000.123456 web1 sshd[7]: pam_sallyport(sshd:auth): code accepted: user=alice …`
  static func newest(in journal: String) -> [String: Int64] {
    var newest: [String: Int64] = [:]
    for line in journal.split(separator: "\n") where line.contains(": pam_sallyport(") {
      let rest = line.split(separator: " accepted: user=", maxSplits: 1).dropFirst().first
      guard let user = rest?.split(separator: " ").first.map(String.init),
        let time = line.split(separator: ".").first.flatMap({ Int64($0) })
      else { continue }
      newest[user] = max(newest[user] ?? 0, time)
    }
    return newest
  }
}
