import CSystem
import OneTimePassword

/// Standard input, output and error of this process.
final class SystemTerminal: Terminal {
  private var signals: Int32 = -1
  private(set) var failure: Int32?

  var isInteractive: Bool { terminal_is(0) }

  func screen(of stream: Stream) -> Screen? {
    var (columns, lines): (Int32, Int32) = (0, 0)
    // SAFETY: both pointers live for the call.
    guard unsafe terminal_size(descriptor(stream), &columns, &lines) else { return nil }
    return Screen(columns: Int(columns), lines: Int(lines), isUTF8: locale_is_utf8())
  }

  func watchForInterruption() {
    if signals < 0 { signals = signals_open() }
  }

  func interruption() -> Interruption? {
    let number = signals_take(signals)
    return number > 0 ? .signal(number) : nil
  }

  func write(_ bytes: [UInt8], to stream: Stream) {
    guard stream == .aside || failure == nil else { return }
    // SAFETY: the buffer lives for the call.
    let problem = unsafe bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return Int32(0) }
      return unsafe output_all(descriptor(stream), base, bytes.count)
    }
    if problem != 0, stream == .answer { failure = problem }
  }

  func line(prompt: String, on stream: Stream, echo: Bool) throws(Interruption) -> Secret {
    let isPerson = isInteractive
    if isPerson { write(Array(prompt.utf8), to: stream) }
    if isPerson, !echo { terminal_echo(0, false) }
    defer {
      if isPerson, !echo {
        terminal_echo(0, true)
        write([UInt8(ascii: "\n")], to: stream)
      }
    }
    return try readLine(limit: Limits.line)
  }

  func rest(limit: Int) throws(Interruption) -> Secret? {
    guard let buffer = Secret(count: limit + 1) else { throw .failure(ENOMEM) }
    var count = 0
    while count <= limit {
      try wait()
      // SAFETY: the buffer has limit + 1 bytes, and lives for the call.
      let got = unsafe buffer.withMutableBytes { bytes in
        guard let base = bytes.baseAddress else { return Int64(0) }
        return unsafe input_some(0, base + count, limit + 1 - count)
      }
      if got < 0 { throw .failure(Int32(clamping: -got)) }
      if got == 0 { break }
      count += Int(got)
    }
    if count > limit { return nil }
    guard let bytes = buffer.slice(0..<count) else { throw .failure(ENOMEM) }
    return bytes
  }

  private func descriptor(_ stream: Stream) -> Int32 {
    switch stream {
    case .answer: 1
    case .aside: 2
    }
  }

  /// Byte by byte, so that nothing is taken from whoever reads after the newline.
  private func readLine(limit: Int) throws(Interruption) -> Secret {
    guard let buffer = Secret(count: limit) else { throw .failure(ENOMEM) }
    var count = 0
    while let byte = try nextByte(), byte != UInt8(ascii: "\n") {
      if count < limit { buffer.set(count, to: byte) }
      count += 1
    }
    if count == 0, isAtEnd { throw .endOfInput }
    guard let bytes = buffer.slice(0..<min(count, limit)) else { throw .failure(ENOMEM) }
    return bytes
  }

  private var isAtEnd = false

  private func nextByte() throws(Interruption) -> UInt8? {
    try wait()
    var byte: UInt8 = 0
    // SAFETY: the pointer lives for the call.
    let count = unsafe input_some(0, &byte, 1)
    if count < 0 { throw .failure(Int32(clamping: -count)) }
    isAtEnd = count == 0
    return count == 1 ? byte : nil
  }

  private func wait() throws(Interruption) {
    let problem = signals_wait(signals, 0)
    if problem != 0 { throw .failure(problem) }
    if let interruption = interruption() { throw interruption }
  }
}
