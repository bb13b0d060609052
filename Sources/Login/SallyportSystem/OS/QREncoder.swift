import CQRCodeGen
package import OneTimePassword
package import SallyportCore

/// QR codes from libqrcodegen, which is linked statically.
package enum QREncoder {
  /// The smallest QR code of `text`; nil if the text is empty or longer than 929 bytes, or if
  /// memory is short. The user then has the text alone.
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
