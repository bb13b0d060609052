import SallyportCore

/// The change of a service's file, to show.
package struct StackDiff {
  package let text: String

  package init(_ change: StackChange) {
    let (old, new) = (change.shown, change.after ?? change.shown.withoutOurs)
    let isAdding = change.shown.ours.isEmpty
    let longer = isAdding ? new : old
    let omitted = Set(longer.omitted)
    let ours = Set(longer.ours.flatMap { Array($0) }).union(omitted)
    let (mark, other) = isAdding ? ("+", "-") : ("-", "+")
    var (lines, last): ([String], Int) = ([], 0)
    for number in longer.lines.indices.map({ $0 + 1 }) {
      let isOurs = ours.contains(number)
      guard isOurs || ours.contains(number - 1) || ours.contains(number + 1) else { continue }
      if number > last + 1 { lines.append("   …") }
      last = number
      let line = longer.lines[number - 1].filter { $0 != 0x0a }
      if omitted.contains(number) {
        let old = line.dropFirst(ServiceFile.omission.count)
        lines.append("\(other)  \(printableLine(Array(old)))")
      }
      lines.append("\(isOurs ? mark : " ")  \(printableLine(line))")
    }
    if last < longer.lines.count { lines.append("   …") }
    let head = change.before == nil ? "\(change.path) (new, from the vendor's)" : change.path
    text = ([head] + lines).joined(separator: "\n")
  }
}

/// A line of a configuration file, safe for a terminal: spaces stay, control characters become `?`.
private func printableLine(_ bytes: [UInt8]) -> String {
  String(
    decoding: bytes.map { $0 == 0x09 ? 0x20 : ($0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0) },
    as: UTF8.self)
}
