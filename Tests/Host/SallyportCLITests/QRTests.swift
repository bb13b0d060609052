import OneTimePassword
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

@Suite struct `QR codes` {
  /// A code that is no QR code, of an odd or even size: its modules follow no pattern that could
  /// hide a mistake.
  private func matrix(_ size: Int) throws -> QRMatrix {
    let cells = try #require(Secret((0..<(size * size)).map { UInt8(($0 * $0 / 3 + $0) % 2) }))
    return try #require(QRMatrix(size: size, cells: cells))
  }

  private func isInk(_ scalar: Unicode.Scalar, lower: Bool) throws -> Bool {
    switch scalar {
    case "\u{2588}": return true
    case "\u{2580}": return !lower
    case "\u{2584}": return lower
    case " ": return false
    case _:
      Issue.record("unexpected character \(scalar)")
      return false
    }
  }

  @Test(arguments: [21, 22, 25, 37], [0, 2, 4])
  func `Half blocks read back give the modules, with light ones inked`(size: Int, zone: Int) throws
  {
    let matrix = try matrix(size)
    let text = plainText(inMemory(matrix.text(style: .halfBlocks, quietZone: zone)))
    let lines = text.split(separator: "\n").map { Array($0.unicodeScalars) }
    let extent = matrix.extent(style: .halfBlocks, quietZone: zone)
    #expect(lines.count == extent.lines)
    #expect(lines.allSatisfy { $0.count == extent.columns })
    for row in -zone..<(size + zone) {
      for column in -zone..<(size + zone) {
        let scalar = lines[(row + zone) / 2][column + zone]
        let ink = try isInk(scalar, lower: (row + zone) % 2 == 1)
        #expect(ink == !matrix[row, column], "\(row), \(column)")
      }
    }
  }

  @Test(arguments: [21, 22], [0, 2])
  func `ASCII read back gives the modules`(size: Int, zone: Int) throws {
    let matrix = try matrix(size)
    let text = plainText(inMemory(matrix.text(style: .ascii, quietZone: zone)))
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      .map { Array($0.utf8) }
    #expect(lines.count == size + 2 * zone)
    for (row, line) in lines.enumerated() {
      #expect(line.count == 2 * (size + 2 * zone))
      for column in 0..<(size + 2 * zone) {
        let pair = Array(line[(2 * column)..<(2 * column + 2)])
        let dark = matrix[row - zone, column - zone]
        #expect(pair == Array((dark ? "  " : "##").utf8), "\(row), \(column)")
      }
    }
  }

  @Test func `Outside the square everything is light`() throws {
    let matrix = try matrix(21)
    for place in [-1, 21, .min, .max] {
      #expect(!matrix[place, 0])
      #expect(!matrix[0, place])
    }
  }

  @Test func `A matrix wants all its modules`() throws {
    let cells = try #require(Secret(count: 21 * 21 - 1))
    for size in [21, 0, -1, 178, Int.max] { #expect(QRMatrix(size: size, cells: cells) == nil) }
  }

  @Test(arguments: [(14, 21), (83, 37), (117, 41)])
  func `The encoder gives the smallest code, with its three finders`(bytes: Int, size: Int) throws {
    let text = try #require(Secret(Array(repeating: UInt8(ascii: "a"), count: bytes)))
    let matrix = try #require(QREncoder.encode(text))
    #expect(matrix.size == size)
    for (top, left) in [(0, 0), (0, size - 7), (size - 7, 0)] {
      for row in 0..<7 {
        for column in 0..<7 {
          let ring = max(abs(row - 3), abs(column - 3))
          #expect(matrix[top + row, left + column] == (ring != 2))
        }
      }
    }
  }

  /// ISO/IEC 18004, table 7: the bytes that each version holds in 8-bit mode at level L.
  private static let capacities = [
    17, 32, 53, 78, 106, 134, 154, 192, 230, 271, 321, 367, 425, 458, 520, 586, 644, 718, 792, 858,
    929,
  ]

  /// An assertion of the library that did not hold would end the process.
  // shows: qr-code
  @Test func `Every length up to the bound has the smallest code, and no other has one`() throws {
    for bytes in [Int](0...931) + [2953, 2954, 3917, 3918, 4096, 40000, 1 << 20] {
      let content = (0..<bytes).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ bytes) }
      let matrix = QREncoder.encode(try #require(Secret(content)))
      let version = bytes == 0 ? nil : Self.capacities.firstIndex { bytes <= $0 }
      #expect(matrix?.size == version.map { 21 + 4 * $0 }, "\(bytes) bytes")
    }
  }

  @Test func `Every byte has a code, alone and many times`() throws {
    for byte in UInt8.min...UInt8.max {
      for count in [1, 106] {
        let text = try #require(Secret([UInt8](repeating: byte, count: count)))
        #expect(QREncoder.encode(text) != nil, "\(count) times \(byte)")
      }
    }
  }

  /// 64 bytes of issuer and account, each written with three, and a key of 128 bytes.
  // shows: qr-code
  @Test func `The longest URI has a code`() throws {
    let label = [UInt8](repeating: UInt8(ascii: "/"), count: Label.maximumLength)
    let parameters = try #require(CodeParameters(type: .hotp, algorithm: .sha512, digits: .eight))
    let uri = OtpauthURI(
      issuer: label, account: label, secret: try #require(Secret(count: 128)),
      parameters: parameters, counter: .max)
    let text = inMemory(uri.text())
    #expect(text.count == 868)
    #expect(QREncoder.encode(text) != nil)
  }

  private static let choices: [(QRChoice, Screen?, Drawn)] = [
    (.auto, Screen(columns: 80, lines: 24, isUTF8: true), .halfBlocks),
    (.auto, Screen(columns: 80, lines: 22, isUTF8: true), .halfBlocks),
    (.auto, Screen(columns: 80, lines: 21, isUTF8: true), .tooSmall(41, 22)),
    (.auto, Screen(columns: 41, lines: 22, isUTF8: true), .halfBlocks),
    (.auto, Screen(columns: 40, lines: 50, isUTF8: true), .tooSmall(41, 22)),
    (.auto, Screen(columns: 82, lines: 42, isUTF8: false), .ascii),
    (.auto, Screen(columns: 82, lines: 41, isUTF8: false), .tooSmall(82, 42)),
    (.auto, Screen(columns: 80, lines: 24, isUTF8: false), .tooSmall(82, 42)),
    (.auto, nil, .nothing), (.none, Screen(columns: 80, lines: 24, isUTF8: true), .nothing),
    (.utf8, nil, .halfBlocks), (.ascii, nil, .ascii),
    (.inverted, nil, .halfBlocks),
    (.utf8, Screen(columns: 20, lines: 5, isUTF8: false), .halfBlocks),
  ]

  @Test(arguments: choices) func `The screen decides how it is drawn`(
    choice: QRChoice, screen: Screen?, wanted: Drawn
  ) throws {
    let matrix = try matrix(37)
    #expect(Drawn(QRDrawing(choice, on: screen, hasColours: false) { matrix }) == wanted)
  }

  @Test(arguments: [
    (80, 24, true, QRStyle.colouredHalfBlocks, 4), (45, 24, true, .colouredHalfBlocks, 4),
    (80, 23, true, .colouredHalfBlocks, 2), (44, 24, true, .colouredHalfBlocks, 2),
    (120, 60, false, .colouredSpaces, 4), (82, 60, false, .colouredSpaces, 2),
  ]) func `With colours the quiet zone is four modules where there is room`(
    columns: Int, lines: Int, isUTF8: Bool, style: QRStyle, zone: Int
  ) throws {
    let matrix = try matrix(37)
    let screen = Screen(columns: columns, lines: lines, isUTF8: isUTF8)
    let wanted = inMemory(matrix.text(style: style, quietZone: zone))
    #expect(
      QRDrawing(.auto, on: screen, hasColours: true) { matrix }
        == .code(wanted.bytes(in: 0..<wanted.count)))
  }

  @Test(arguments: [21, 22, 37], [0, 2, 4])
  func `Inverted half blocks read back give the modules, with dark ones inked`(
    size: Int, zone: Int
  ) throws {
    let matrix = try matrix(size)
    let text = plainText(inMemory(matrix.text(style: .inverted, quietZone: zone)))
    let lines = text.split(separator: "\n").map { Array($0.unicodeScalars) }
    for row in -zone..<(size + zone) {
      for column in -zone..<(size + zone) {
        let scalar = lines[(row + zone) / 2][column + zone]
        let ink = try isInk(scalar, lower: (row + zone) % 2 == 1)
        #expect(ink == matrix[row, column], "\(row), \(column)")
      }
    }
  }

  /// Each line sets its colours and takes them back, so that nothing beside the code changes.
  @Test(arguments: [QRStyle.colouredHalfBlocks, .colouredSpaces])
  func `Colours end with their line`(style: QRStyle) throws {
    let text = plainText(inMemory(try matrix(25).text(style: style, quietZone: 2)))
    let lines = text.split(separator: "\n")
    #expect(lines.count == (style == .colouredSpaces ? 29 : 15))
    #expect(lines.allSatisfy { $0.hasPrefix("\u{1b}[") && $0.hasSuffix("\u{1b}[0m") })
  }

  enum Drawn: Equatable {
    case halfBlocks, ascii, nothing
    case tooSmall(Int, Int)

    init(_ drawing: QRDrawing) {
      switch drawing {
      case .code(let text): self = text.contains(UInt8(ascii: "#")) ? .ascii : .halfBlocks
      case .nothing, .noTerminal: self = .nothing
      case .tooSmall(let columns, let lines): self = .tooSmall(columns, lines)
      }
    }
  }
}
