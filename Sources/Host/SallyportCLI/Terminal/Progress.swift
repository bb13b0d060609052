/// A progress bar on a terminal; prints nothing elsewhere.
package final class Progress {
  private let total: Int
  private let terminal: any Terminal
  private let width: Int
  private var shown = false

  package init(of total: Int, on terminal: any Terminal) {
    self.total = total
    self.terminal = terminal
    width = terminal.screen(of: .aside).map { min($0.columns, 100) - 32 } ?? 0
  }

  package func show(_ done: Int) {
    guard width >= 10, done < total || shown else { return }
    shown = true
    let filled = width * done / max(total, 1)
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    let counts = "\(done) of \(total)"
    terminal.write(Array("\r[\(bar)] \(counts)".utf8), to: .aside)
  }

  /// Erases the bar.
  package func end() {
    guard shown else { return }
    let blank = String(repeating: " ", count: width + 31)
    terminal.write(Array("\r\(blank)\r".utf8), to: .aside)
    shown = false
  }
}
