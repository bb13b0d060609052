import OneTimePassword
import SallyportCore
import TestSupport
import Testing

/// Four fields; the third counts only where it is written again as 7.
private struct Sample: SecretFrame, Equatable {
  static let longest = 13
  let id: UInt64
  let isOn: Bool
  let text: [UInt8]

  static func pass(_ body: Sample?, _ fields: inout Fields) -> Sample? {
    let (id, isOn) = (fields.id(body?.id), fields.bit(body?.isOn))
    _ = fields.byte(body.map { _ in 7 })
    return Sample(id: id, isOn: isOn, text: fields.counted(body?.text))
  }
}

@Suite struct `The fields of a frame` {
  private static let sample = Sample(id: 5, isOn: true, text: [])
  private static let version = Wire.written
  private static let frame = [version, 5, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0]

  private func read(_ bytes: [UInt8]) throws -> Sample? { Sample.decode(try secret(of: bytes)) }

  private func secret(of bytes: [UInt8]) throws -> Secret {
    let secret = try #require(Secret(count: bytes.count))
    for (index, byte) in bytes.enumerated() { secret.set(index, to: byte) }
    return secret
  }

  @Test func `are written and read by one description`() throws {
    #expect(Self.sample.encoded().map { $0.bytes(in: 0..<$0.count) } == Self.frame)
    #expect(try read(Self.frame) == Self.sample)
  }

  // decisive
  @Test(arguments: [
    (0, UInt8(0)), (0, 0xff), (1, 0), (9, 2), (10, 8), (11, 1), (11, 0xff),
  ])
  func `make the whole invalid where one of them is`(place: Int, byte: UInt8) throws {
    var changed = Self.frame
    changed[place] = byte
    #expect(try read(changed) == nil)
  }

  @Test(arguments: 1...11)
  func `are not read from a frame that ends before them`(count: Int) throws {
    #expect(try read(Array(Self.frame.prefix(count))) == nil)
  }

  @Test func `are not read from a frame that goes on behind them`() throws {
    #expect(try read(Self.frame + [0]) == nil)
    var fields = Fields(reading: try secret(of: [1, 0]))
    _ = fields.bit(nil)
    #expect(!fields.isWhole)
  }

  @Test func `have no place in a frame that is longer than the longest`() throws {
    let longer = Sample(id: 5, isOn: true, text: [1, 2])
    #expect(longer.encoded() == nil)
    var frame = Self.frame + [1, 2]
    frame[11] = 2
    #expect(try read(frame) == nil)
  }

  @Test(arguments: [-1, 2, 3, Int.max])
  func `are empty where the frame has fewer bytes`(count: Int) throws {
    var fields = Fields(reading: try secret(of: [9]))
    #expect(fields.bytes(nil, count).isEmpty)
    #expect(!fields.isWhole)
  }

  @Test func `are no bit where the byte is neither 0 nor 1`() throws {
    var fields = Fields(reading: try secret(of: [2]))
    _ = fields.bit(nil)
    #expect(!fields.isWhole)
  }

  @Test func `are not written where there is no value`() {
    var fields = Fields(writing: 8)
    _ = fields.number(UInt64?.none)
    #expect(fields.written == nil)
  }
}
