import FleetProtocol
import OneTimePassword
package import SallyportCore

/// What a pass has replaced, with what was used of it (docs/fleet-format.md).
package struct SuspendedEnrollment: Sendable {
  /// By which the present enrollment names it.
  package let id: UInt64
  package let enrollment: Enrollment
  package let state: LoginState

  package init(_ id: UInt64, _ enrollment: Enrollment, _ state: LoginState) {
    (self.id, self.enrollment, self.state) = (id, enrollment, state)
  }
}

extension SuspendedEnrollment {
  /// nil if memory is short, or the state cannot be written.
  func written() -> Secret? {
    guard let file = enrollment.written(), let state = state.written() else { return nil }
    let counts =
      number(UInt64(state.count)).prefix(2) + state + number(UInt64(file.count)).prefix(4)
    var text = SecretText(capacity: 8 + counts.count + file.count)
    for byte in number(id) + counts { text.put(byte) }
    text.add(file)
    return text.finish()
  }

  /// One to eight, and where they end.
  static func readAll(_ text: Secret, from start: Int) -> ([SuspendedEnrollment], Int)? {
    guard start < text.count, (1...Suspension.maximum).contains(Int(text[start])) else {
      return nil
    }
    var (all, place): ([SuspendedEnrollment], Int) = ([], start + 1)
    for _ in 0..<text[start] {
      guard let (one, end) = read(text, from: place), !all.contains(where: { $0.id == one.id })
      else { return nil }
      all.append(one)
      place = end
    }
    return (all, place)
  }

  private static func read(_ text: Secret, from start: Int) -> (SuspendedEnrollment, Int)? {
    guard text.count >= start + 10 else { return nil }
    let id = number(text.bytes(in: start..<start + 8))
    let state = start + 10..<start + 10 + Int(number(text.bytes(in: start + 8..<start + 10)))
    guard text.count >= state.upperBound + 4 else { return nil }
    let length = Int(number(text.bytes(in: state.upperBound..<state.upperBound + 4)))
    let file = state.upperBound + 4..<state.upperBound + 4 + length
    guard text.count >= file.upperBound, let body = text.slice(file),
      let enrollment = try? Enrollment.read(body), enrollment.uid == nil,
      let state = LoginState.read(text.bytes(in: state)), state.enrollmentID == enrollment.id
    else { return nil }
    return (SuspendedEnrollment(id, enrollment, state), file.upperBound)
  }
}
