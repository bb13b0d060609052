import CQRCodeGen
package import OneTimePassword
package import SallyportCore

/// QR codes by libqrcodegen, which is linked in.
package enum QREncoder {
  /// The smallest QR code of `text`; nil where the text is empty or longer than 929 bytes, or
  /// memory runs out: people have the text then.
  package static func encode(_ text: Secret) -> QRMatrix? {
    guard let cells = Secret(count: Int(QR_LARGEST_SIDE * QR_LARGEST_SIDE)) else { return nil }
    var size: Int32 = 0
    // SAFETY: both buffers outlive the call; `cells` has the size that qr_encode asks for.
    unsafe text.withBytes { text in
      unsafe cells.withMutableBytes { cells in
        guard let base = text.baseAddress,
          let target = unsafe cells.bindMemory(to: UInt8.self).baseAddress
        else { return }
        size = unsafe qr_encode(base, text.count, target)
      }
    }
    return QRMatrix(size: Int(size), cells: cells)
  }
}
