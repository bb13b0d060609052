package import SallyportCore
import SallyportSystem

extension LogLine {
  /// What the owner is told, in one line; empty without notices. `now`: for how long ago.
  package static func notices(_ notices: [OwnerNotice], at now: UnixTime, in sentences: Sentences)
    -> LogLine
  {
    var (line, events) = (LogLine(""), LogLine(""))
    for notice in notices {
      if !events.bytes.isEmpty { events.add("; ") }
      events.add(sentences.text(of: notice, at: now))
    }
    if !notices.isEmpty { line.add(sentences.text(.sinceLastLogin, events.bytes)) }
    return line
  }
}

extension Sentences {
  fileprivate func text(of notice: OwnerNotice, at now: UnixTime) -> [UInt8] {
    switch notice {
    case .wrongCodes(let count):
      return counted(UInt64(count), .wrongCodeElsewhere, .wrongCodesElsewhere)
    case .added(let name, let time):
      return text(.authenticatorAdded, name.bytes, ago(time, now))
    case .passGiven(let time): return text(.passGiven, ago(time, now))
    case .restored(let time): return text(.restored, ago(time, now))
    case .passUsed(let time, let origin):
      guard let origin else { return text(.passUsed, ago(time, now)) }
      return text(.passUsedFrom, ago(time, now), Addresses.bytes(origin))
    }
  }

  @inline(never) private func ago(_ time: UnixTime, _ now: UnixTime) -> [UInt8] {
    let minutes = now.elapsed(since: time) / 60
    if minutes < 120 { return counted(minutes, .minuteAgo, .minutesAgo) }
    if minutes < 2880 { return counted(minutes / 60, .hourAgo, .hoursAgo) }
    return counted(minutes / 1440, .dayAgo, .daysAgo)
  }
}
