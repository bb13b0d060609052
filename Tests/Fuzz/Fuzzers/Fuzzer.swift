import Foundation
import OneTimePassword

/// Something that reads what others wrote, and what must hold of it for every input.
struct Fuzzer: Sendable {
  let name: String
  /// Ends the process where something does not hold.
  let check: @Sendable ([UInt8]) -> Void

  /// Each has a directory in `corpus` and a list of words in `words`.
  static let all = [
    appExport, base32, catalog, codes, enrollment, googleAuthenticator, googleExport, join,
    keyContainer, move, note, otpauthURI, policy, qrCode, reserve, reserveAnswer, reserveQuestion,
    response, serviceAnswer, serviceRequest, session, stack, state, token, tokenList, uriList,
    usersOath,
  ]
}

/// The one that the environment names.
private let chosen: Fuzzer = {
  let name = ProcessInfo.processInfo.environment["FUZZER"] ?? ""
  guard let fuzzer = Fuzzer.all.first(where: { $0.name == name }) else {
    fatalError("FUZZER is none of: " + Fuzzer.all.map(\.name).joined(separator: " "))
  }
  return fuzzer
}()

/// libFuzzer's call for each input.
@c(LLVMFuzzerTestOneInput)
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  chosen.check([UInt8](UnsafeBufferPointer(start: data, count: count)))
  return 0
}

/// What must hold, in words for the reader of a failure.
func must(_ holds: Bool, _ what: @autoclosure () -> String) {
  if !holds { fatalError(what()) }
}

func unwrapped<T>(_ value: T?, _ what: @autoclosure () -> String) -> T {
  guard let value else { fatalError(what()) }
  return value
}

/// What must not throw.
func succeeds<T, E: Error>(_ what: String, _ body: () throws(E) -> T) -> T {
  do throws(E) {
    return try body()
  } catch {
    fatalError("\(what): \(error)")
  }
}

func secret(_ bytes: some Collection<UInt8>) -> Secret {
  unwrapped(Secret(bytes), "out of memory")
}

func bytes(_ secret: Secret) -> [UInt8] { (0..<secret.count).map { secret[$0] } }

/// Takes an input apart: numbers in front, the rest as it is.
struct Input {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
  mutating func number64() -> UInt64 { (0..<8).reduce(0) { sum, _ in sum << 8 | UInt64(byte()) } }
  mutating func bytes(_ count: Int) -> [UInt8] {
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
  mutating func remaining() -> [UInt8] { bytes(rest.count) }
}
