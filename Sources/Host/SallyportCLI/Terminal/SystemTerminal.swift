import CCommand
import Glibc
import OneTimePassword
import SallyportSupport

/// Standard input, output and error of this process.
final class SystemTerminal: Terminal {
  private var signals: Int32 = -1
  private(set) var failure: Int32?

  var isInteractive: Bool { isatty(0) == 1 }

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
    let result = unsafe bytes.withUnsafeBytes { unsafe writeAll($0, to: descriptor(stream)) }
    if case .failure(let error) = result, stream == .answer { failure = error.number }
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
        unsafe readSome(from: 0, into: UnsafeMutableRawBufferPointer(rebasing: bytes[count...]))
      }
      let more = try rethrow(got.get) { Interruption.failure($0.number) }
      if more == 0 { break }
      count += more
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

  /// Reads byte by byte, so that what follows the newline is left for other programs.
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
    // SAFETY: the byte lives for the call.
    let got = unsafe withUnsafeMutableBytes(of: &byte) { unsafe readSome(from: 0, into: $0) }
    let count = try rethrow(got.get) { Interruption.failure($0.number) }
    isAtEnd = count == 0
    return count == 1 ? byte : nil
  }

  private func wait() throws(Interruption) {
    let problem = signals_wait(signals, 0)
    if problem != 0 { throw .failure(problem) }
    if let interruption = interruption() { throw interruption }
  }
}
