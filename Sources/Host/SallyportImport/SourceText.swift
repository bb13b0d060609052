import OneTimePassword
import SallyportCore

/// The lines and words of another module's file, as ranges of its bytes: these contain secrets,
/// which are not copied. Any bytes give a result.
struct SourceText {
  let bytes: Secret

  /// A line without its line feed, which the last line may lack. The number is counted from 1.
  package struct Line {
    let number: Int
    let range: Range<Int>
  }

  /// Where the lines begin.
  let start: Int

  /// `skipsMark`: leaves out the byte order mark that some editors write first.
  init(_ bytes: Secret, skipsMark: Bool = false) {
    self.bytes = bytes
    let hasMark = bytes.count >= 3 && bytes.bytes(in: 0..<3) == [0xef, 0xbb, 0xbf]
    start = skipsMark && hasMark ? 3 : 0
  }

  var lines: [Line] {
    var lines: [Line] = []
    var start = self.start
    while start < bytes.count {
      let end = offset(of: newline, in: start..<bytes.count) ?? bytes.count
      lines.append(Line(number: lines.count + 1, range: start..<end))
      start = end + 1
    }
    return lines
  }

  /// Of the line in which this byte is, from 1.
  func lineNumber(at position: Int) -> Int {
    var number = 1
    for index in 0..<min(position, bytes.count) where bytes[index] == newline { number += 1 }
    return number
  }

  /// The first byte that is not blank; 0 without one.
  var firstByte: UInt8 {
    var index = start
    while isBlank(bytes[index]) || bytes[index] == newline { index += 1 }
    return bytes[index]
  }

  /// The parts between whitespace, which is a space, a tab or a carriage return.
  func words(in range: Range<Int>) -> [Range<Int>] {
    var words: [Range<Int>] = []
    var index = range.lowerBound
    while index < range.upperBound {
      while index < range.upperBound, isBlank(bytes[index]) { index += 1 }
      let start = index
      while index < range.upperBound, !isBlank(bytes[index]) { index += 1 }
      if start < index { words.append(start..<index) }
    }
    return words
  }

  func offset(of byte: UInt8, in range: Range<Int>) -> Int? {
    var index = range.lowerBound
    while index < range.upperBound {
      if bytes[index] == byte { return index }
      index += 1
    }
    return nil
  }

  /// The first byte of the range; 0 if it is empty.
  func first(of range: Range<Int>) -> UInt8 { range.isEmpty ? 0 : bytes[range.lowerBound] }

  /// A decimal number without a sign; nil on overflow.
  func number(in range: Range<Int>) -> UInt64? {
    range.count <= 20 ? decimal(bytes.bytes(in: range)) : nil
  }

  func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

  private var newline: UInt8 { UInt8(ascii: "\n") }
}

func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
