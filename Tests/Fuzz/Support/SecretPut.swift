import OneTimePassword

/// What the readers of other formats take from the command's terminal, which is not built here.
extension Secret {
  func put(_ byte: UInt8, at index: Int) {
    guard (0..<count).contains(index) else { return }
    withMutableBytes { $0[index] = byte }
  }
}
