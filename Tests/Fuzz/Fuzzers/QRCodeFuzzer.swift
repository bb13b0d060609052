import SallyportCore
import SallyportSystem

extension Fuzzer {
  /// Up to the bound there is a code, of one of the sizes that codes have, with its three finders
  /// and its timing pattern; above it there is none. The library ends the process where one of its
  /// assertions does not hold.
  // shows: qr-code
  static let qrCode = Fuzzer(name: "qr-code") { input in
    guard let code = QREncoder.encode(secret(input)) else {
      must(!(1...929).contains(input.count), "no code of \(input.count) bytes")
      return
    }
    must((1...929).contains(input.count), "a code of \(input.count) bytes")
    must((21...101).contains(code.size) && code.size % 4 == 1, "\(code.size) modules on a side")
    let last = code.size - 7
    for (row, column) in [(0, 0), (0, last), (last, 0)] { hasFinder(code, row, column) }
    for place in 8..<(code.size - 8) {
      must(code[6, place] == (place % 2 == 0), "no timing pattern")
      must(code[place, 6] == (place % 2 == 0), "no timing pattern")
    }
  }
}

private func hasFinder(_ code: QRMatrix, _ top: Int, _ left: Int) {
  for row in 0..<7 {
    for column in 0..<7 {
      let ring = max(abs(row - 3), abs(column - 3))
      must(code[top + row, left + column] == (ring != 2), "no finder at \(top), \(left)")
    }
  }
}
