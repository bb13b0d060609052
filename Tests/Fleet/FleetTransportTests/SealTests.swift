import Glibc
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

/// Keys of this byte.
func sealKeys(_ byte: UInt8) throws -> SealKeys {
  try #require(
    SealKeys(
      name: [UInt8](repeating: byte, count: SealKeys.nameLength),
      question: try secret(SealKeys.keyLength, byte),
      answer: try secret(SealKeys.keyLength, byte &+ 1),
      proof: [UInt8](repeating: byte, count: SealKeys.proofLength)))
}

private func pin(_ byte: UInt8) throws -> Pin {
  try #require(Pin([UInt8](repeating: byte, count: 32)))
}

private func place(_ host: UInt8 = 1, _ nonce: UInt8 = 2, _ number: UInt64 = 3) throws
  -> SealedPlace
{
  SealedPlace(
    host: try pin(host), nonce: [UInt8](repeating: nonce, count: SealedPlace.nonceLength),
    number: number)
}

private func bytes(_ secret: Secret) -> [UInt8] { secret.bytes(in: 0..<secret.count) }

extension Secret {
  /// With one bit changed.
  fileprivate func flipped(_ bit: Int) -> Secret? {
    var bytes = bytes(in: 0..<count)
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    return Secret(bytes)
  }
}

@Suite struct `AES-256-SIV` {
  /// By RFC 5297, 2.4 and 2.6, with CMAC and AES-CTR of Python's package cryptography 48.
  @Test func `is what another program computes`() throws {
    let key = try #require(Secret((0..<64).map { UInt8($0) }))
    let beside = (0..<24).map { UInt8(0xa0 + $0) }
    let cases: [([UInt8], String)] = [
      (
        (0..<20).map { UInt8(0x40 + $0) },
        "6641f06840e2654f16a606bb53df373850e537134c86f6938e5c0ec10ce5308269ea24d3"
      ),
      ([0x78], "e8938e54eb8b69537fc7bde15616801786"),
    ]
    for (text, wanted) in cases {
      let plain = try #require(Secret(text))
      let sealed = try #require(SIV.seal(plain, key, beside: beside))
      #expect(String(decoding: hexadecimal(bytes(sealed)), as: UTF8.self) == wanted)
      let opened = try #require(SIV.open(sealed, from: 0, key, beside: beside))
      #expect(bytes(opened) == text)
    }
  }

  @Test func `is there`() { #expect(SIV.isThere) }

  @Test func `is not asked for nothing, with nothing beside, or with half a key`() throws {
    let (key, text) = (try secret(64), try secret(1))
    #expect(SIV.seal(try secret(0), key, beside: [1]) == nil)
    #expect(SIV.seal(text, key, beside: []) == nil)
    #expect(SIV.seal(text, try secret(32), beside: [1]) == nil)
    for count in 0...16 { #expect(SIV.open(try secret(count), from: 0, key, beside: [1]) == nil) }
  }
}

// decisive
@Suite struct `A sealed frame` {
  private let body = Array("what alice typed".utf8)

  private func question(_ keys: SealKeys, at place: SealedPlace) throws -> Secret {
    let asked = try #require(Secret(body))
    return try #require(SealedFrame.question(1, asked, keys, at: place))
  }

  @Test func `gives back the question, and shows neither its kind nor its text`() throws {
    let (keys, place) = (try sealKeys(5), try place())
    let sealed = try question(keys, at: place)
    #expect(sealed.count == body.count + 42)
    #expect(SealedFrame.nameOfKeys(sealed) == keys.name)
    let opened = try #require(SealedFrame.open(question: sealed, keys, at: place))
    #expect(opened.kind == 1 && bytes(opened.body) == body)
    // The same again is another one.
    let again = try question(keys, at: place)
    #expect(bytes(again).suffix(body.count) != bytes(sealed).suffix(body.count))
  }

  @Test func `is opened at its place alone, and by its keys`() throws {
    let (keys, here) = (try sealKeys(5), try place())
    let sealed = try question(keys, at: here)
    for other in [try place(9), try place(1, 9), try place(1, 2, 2), try place(1, 2, 4)] {
      #expect(SealedFrame.open(question: sealed, keys, at: other) == nil)
    }
    #expect(SealedFrame.open(question: sealed, try sealKeys(6), at: here) == nil)
  }

  @Test func `is refused with any bit changed, and at any other length`() throws {
    let (keys, place) = (try sealKeys(5), try place())
    let sealed = try question(keys, at: place)
    for bit in 0..<sealed.count * 8 {
      let changed = try #require(sealed.flipped(bit))
      #expect(SealedFrame.open(question: changed, keys, at: place) == nil)
    }
    for count in 0..<sealed.count {
      let cut = try #require(sealed.slice(0..<count))
      #expect(SealedFrame.open(question: cut, keys, at: place) == nil)
    }
    let digest = try #require(SealedFrame.digest(ofQuestion: sealed))
    let told = try #require(Secret(body))
    let answer = try #require(
      SealedFrame.answer(0x81, told, marks: [.newer], keys, to: digest, at: place))
    for bit in 0..<answer.count * 8 {
      let changed = try #require(answer.flipped(bit))
      #expect(SealedFrame.open(answer: changed, keys, to: digest, at: place) == nil)
    }
    for count in 0..<answer.count {
      let cut = try #require(answer.slice(0..<count))
      #expect(SealedFrame.open(answer: cut, keys, to: digest, at: place) == nil)
    }
  }

  @Test func `is no answer to another question, nor a question an answer`() throws {
    let (keys, place) = (try sealKeys(5), try place())
    let (first, second) = (try question(keys, at: place), try question(keys, at: place))
    let digests = try [first, second].map { try #require(SealedFrame.digest(ofQuestion: $0)) }
    let told = try #require(Secret(body))
    let answer = try #require(
      SealedFrame.answer(0x81, told, marks: [.onlySealed], keys, to: digests[0], at: place))
    let opened = try #require(SealedFrame.open(answer: answer, keys, to: digests[0], at: place))
    #expect(opened.kind == 0x81 && bytes(opened.body) == body && opened.marks == [.onlySealed])
    #expect(SealedFrame.open(answer: answer, keys, to: digests[1], at: place) == nil)
    // With one key for both directions.
    let same = try secret(SealKeys.keyLength)
    let one = try #require(
      SealKeys(
        name: keys.name, question: same, answer: same, proof: [UInt8](repeating: 0, count: 16)))
    let asked = try question(one, at: place)
    let digest = try #require(SealedFrame.digest(ofQuestion: asked))
    for start in [0, 25] {
      let turned = try #require(asked.slice(start..<asked.count))
      #expect(SealedFrame.open(answer: turned, one, to: digest, at: place) == nil)
    }
  }
}

@Suite struct `The seal of a host` {
  private let own: TemporaryDirectory
  private var path: String { own.path + "/fleet.seal" }

  init() throws { own = try TemporaryDirectory() }

  private func read(_ byte: UInt8 = 1) throws -> HostSeal {
    try HostSeal.read(at: path, of: try pin(byte))
  }

  @Test func `is in its file before it is used, and belongs to one key`() throws {
    #expect(try read().keys == nil)
    let seal = try read()
    seal.noteOthers()
    #expect(seal.isBehind)
    #expect(seal.take(try sealKeys(5)))
    #expect(!seal.isBehind && !seal.isOnly)
    #expect(try read().keys?.name == sealKeys(5).name)
    #expect(try read(2).keys == nil)
    // Where it cannot be written it is not used.
    let lost = HostSeal(try pin(1), try sealKeys(5), at: own.path + "/none/seal")
    lost.note([.newer])
    #expect(!lost.take(try sealKeys(6)))
    #expect(lost.isBehind)
    #expect(lost.complaint()?.contains("/none/seal: No such file") == true)
    #expect(!lost.take(try sealKeys(6)) && lost.complaint() == nil, "it is told once")
    #expect(try lost.keys?.name == sealKeys(5).name)
  }

  @Test func `remembers that nothing else counts`() throws {
    let seal = try read()
    #expect(seal.take(try sealKeys(5)))
    seal.note([.onlySealed])
    #expect(seal.isOnly)
    #expect(try !read().isOnly)
    #expect(seal.save())
    #expect(try read().isOnly)
    // Also with later keys.
    #expect(seal.take(try sealKeys(6)))
    #expect(try read().isOnly)
    #expect(try read().keys?.name == sealKeys(6).name)
  }

  @Test func `is an error where its file is damaged, or anybody's`() throws {
    let seal = try read()
    #expect(seal.take(try sealKeys(5)))
    let whole = bytes(try PrivateFile.read(path))
    for count in 0..<whole.count {
      try rewrite(Array(whole.prefix(count)))
      #expect(throws: PrivateFile.Fault.damaged) { try read() }
    }
    for place in [0, 1] {
      var changed = whole
      changed[place] ^= 0x40
      try rewrite(changed)
      #expect(throws: PrivateFile.Fault.damaged) { try read() }
    }
    try rewrite(whole)
    #expect(try read().keys != nil)
    // SAFETY: a C string that lives for the call.
    #expect(unsafe chmod(path, 0o644) == 0)
    #expect(throws: PrivateFile.Fault.unsafe) { try read() }
  }

  private func rewrite(_ bytes: [UInt8]) throws {
    try replaceFile(path, try #require(Secret(bytes)))
  }
}
