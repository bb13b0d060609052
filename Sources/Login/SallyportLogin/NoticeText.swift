package import SallyportCore
import SallyportSystem

extension LogLine {
  /// What the owner is told, in one line; empty without notices. `now`: for how long ago.
  package static func notices(_ notices: [OwnerNotice], at now: UnixTime) -> LogLine {
    var line = LogLine("")
    for notice in notices {
      line.add(line.bytes.isEmpty ? "Since your last login: " : "; ")
      line.add(notice, at: now)
    }
    if !notices.isEmpty { line.add(".") }
    return line
  }

  private mutating func add(_ notice: OwnerNotice, at now: UnixTime) {
    switch notice {
    case .wrongCodes(let count):
      add(UInt64(count))
      add(count == 1 ? " wrong code from elsewhere" : " wrong codes from elsewhere")
    case .added(let name, let time):
      add("\"")
      add(name.bytes)
      add("\" was added to your enrollment")
      add(ago: time, now)
    case .passGiven(let time):
      add("a pass was given")
      add(ago: time, now)
    case .restored(let time):
      add("what a pass had replaced was restored")
      add(ago: time, now)
    case .passUsed(let time, let origin):
      add("a pass was used")
      add(ago: time, now)
      guard let origin else { return }
      add(" from ")
      add(Addresses.bytes(origin))
    }
  }

  @inline(never) private mutating func add(ago time: UnixTime, _ now: UnixTime) {
    let minutes = now.elapsed(since: time) / 60
    let (count, unit): (UInt64, StaticString) =
      minutes < 120
      ? (minutes, " minute") : minutes < 2880 ? (minutes / 60, " hour") : (minutes / 1440, " day")
    add(" ")
    add(count)
    add(unit)
    add(count == 1 ? " ago" : "s ago")
  }
}
