package import OneTimePassword
import SallyportAdministration
import SallyportCore

/// How a file has a key of AES.
package enum ContainerKeyForm: Sendable {
  case bytes, hexadecimal, base64

  /// The keys of 16, 24 or 32 bytes that a file can be read as: none, or up to three, of which
  /// nobody but a MAC knows the right one. Line ends and blanks do not count in text, nor `0x`
  /// before hexadecimal digits.
  package static func keys(in file: Secret) -> [(key: Secret, form: ContainerKeyForm)] {
    let text = bare(file)
    let isMarked = text.count > 2 && text[0] == UInt8(ascii: "0") && text[1] | 0x20 == 0x78
    let digits = isMarked ? text.slice(2..<text.count) : text
    let read: [(Secret?, ContainerKeyForm)] = [
      (digits.flatMap { try? Hexadecimal.decode($0) }, .hexadecimal),
      (Base64.decode(text), .base64),
      (file, .bytes), (file.count == text.count ? nil : text, .bytes),
    ]
    return read.compactMap { key, form in
      key.flatMap { [16, 24, 32].contains($0.count) ? ($0, form) : nil }
    }
  }

  /// Without blanks and line ends.
  private static func bare(_ file: Secret) -> Secret {
    let kept = (0..<file.count).filter { ![0x20, 0x09, 0x0a, 0x0d].contains(file[$0]) }
    guard kept.count < file.count, let text = Secret(count: kept.count) else { return file }
    for (place, index) in kept.enumerated() { text.set(place, to: file[index]) }
    return text
  }
}
