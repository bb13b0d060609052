/// One end of a phase, for modules that return what is known of them.
package struct StackEnd<State> {
  /// The return value that the application gets.
  package let verdict: PAMCode
  /// What the modules have left.
  package let state: State
  /// The first module that might have returned something else; nil if each answer is known.
  package let doubt: StackEntry?
}

extension ServiceStack {
  /// Every end of a phase, if each module returns one of the values that `answers` lists, with what
  /// it leaves for the next; nil if there are more than `most` paths. `answers` is called only for
  /// entries of kind `.module`, in the order in which they run, and lists at least one value.
  package func ends<State>(
    of phase: PAMPhase, from state: State, most: Int = 256,
    _ answers: (StackEntry, State) -> [(PAMCode, State)]
  ) -> [StackEnd<State>]? {
    if isAborted { return [StackEnd(verdict: .abort, state: state, doubt: nil)] }
    let entries = self[phase]
    var waiting = [(walk: StackWalk(), state: state, doubt: StackEntry?.none)]
    var ends: [StackEnd<State>] = []
    var paths = 1
    while let path = waiting.popLast() {
      guard path.walk.index < entries.count else {
        ends.append(StackEnd(verdict: path.walk.verdict, state: path.state, doubt: path.doubt))
        continue
      }
      let entry = entries[path.walk.index]
      let found =
        entry.kind == .module ? answers(entry, path.state) : [(.permissionDenied, path.state)]
      paths += found.count - 1
      if paths > most { return nil }
      for (code, left) in found {
        var walk = path.walk
        walk.step(entries, answer: code)
        waiting.append((walk, left, path.doubt ?? (found.count > 1 ? entry : nil)))
      }
    }
    return ends
  }
}
