import OneTimePassword
import Testing

@testable import SallyportCLI

/// What a scripted person does at a prompt.
enum Act: Sendable {
  case types(String)
  /// What is typed follows from what was shown before.
  case answers(@Sendable (FakeTerminal) throws -> String)
  case ends
  case signals(Int32)

  var isEnd: Bool { if case .ends = self { true } else { false } }
}

/// A terminal with a script, which has to be used up exactly.
final class FakeTerminal: Terminal {
  let isInteractive: Bool
  var screens: Screen?
  private(set) var answer = ""
  private(set) var aside = ""
  private(set) var prompts: [String] = []
  private(set) var failure: Int32?
  private(set) var isWatching = false
  /// Arrives after the script is used up, before anything is written.
  var lateSignal: Int32?
  /// Standard output fails with this errno from this text on.
  var breaksAt: (text: String, errno: Int32)?
  private var script: [Act]

  init(_ script: [Act] = [], isInteractive: Bool = true, screen: Screen? = nil) {
    (self.script, self.isInteractive, screens) = (script, isInteractive, screen)
  }

  var isUsedUp: Bool { script.isEmpty }

  func screen(of stream: Stream) -> Screen? { screens }
  func watchForInterruption() { isWatching = true }

  func interruption() -> Interruption? {
    guard script.isEmpty, isWatching else { return nil }
    return lateSignal.map { .signal($0) }
  }

  func write(_ bytes: [UInt8], to stream: Stream) {
    let text = String(decoding: bytes, as: UTF8.self)
    switch stream {
    case .answer:
      if let breaksAt, text.contains(breaksAt.text) { failure = breaksAt.errno }
      if failure == nil { answer += text }
    case .aside: aside += text
    }
  }

  func line(prompt: String, on stream: Stream, echo: Bool) throws(Interruption) -> Secret {
    prompts.append(echo ? prompt : "\(prompt)(hidden)")
    guard !script.isEmpty else {
      Issue.record("asked once more than the script says: \(prompt)")
      throw .endOfInput
    }
    return try typed(script.removeFirst())
  }

  func rest(limit: Int) throws(Interruption) -> Secret? {
    guard !script.isEmpty else { throw .endOfInput }
    let text = try typed(script.removeFirst())
    return text.count <= limit ? text : nil
  }

  private func typed(_ act: Act) throws(Interruption) -> Secret {
    let text: String
    switch act {
    case .types(let words): text = words
    case .answers(let words):
      do { text = try words(self) } catch {
        Issue.record(error)
        throw .endOfInput
      }
    case .ends: throw .endOfInput
    case .signals(let number): throw .signal(number)
    }
    guard let secret = Secret(Array(text.utf8)) else { throw .failure(12) }
    return secret
  }
}
