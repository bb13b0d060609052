import OneTimePassword

extension Fuzzer {
  /// Any text is bytes that encode to a text of the same bytes, or an error with its place; any
  /// bytes encode to a text that reads as they were.
  // shows: hostile-uri
  static let base32 = Fuzzer(name: "base32") { input in
    do throws(Base32.Error) {
      let bytes = try Base32.decode(secret(input))
      returns(bytes)
      let letters = input.filter { !Array("-= \t".utf8).contains($0) }
      let text = unwrapped(Base32.encode(bytes), "does not encode")
      must(upperCased(letters) == allBytes(text), "encodes to another text")
    } catch {
      must((0...input.count).contains(error.offset), "error beyond the text: \(error)")
      must(error.kind != .outOfMemory, "out of memory")
    }
    returns(secret(input))
  }
}

private func returns(_ bytes: Secret) {
  let text = unwrapped(Base32.encode(bytes), "does not encode")
  let again = succeeds("does not read what it wrote") { () throws(Base32.Error) in
    try Base32.decode(text)
  }
  must(constantTimeEquals(bytes, again), "reads other bytes than it wrote")
}

private func allBytes(_ secret: Secret) -> [UInt8] { bytes(secret) }

private func upperCased(_ text: [UInt8]) -> [UInt8] {
  text.map { (0x61...0x7a).contains($0) ? $0 - 0x20 : $0 }
}
