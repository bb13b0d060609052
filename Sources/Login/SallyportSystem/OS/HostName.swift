internal import CSystem
package import SallyportCore

/// The name of this machine: the issuer in otpauth URIs, and in messages.
package enum HostName {
  /// The host name; `Linux` if it is empty or cannot be shown.
  package static var label: Label {
    var name = [UInt8](repeating: 0, count: 256)
    // SAFETY: the buffer has more bytes than are passed. Where the call fails they stay zeros.
    unsafe name.withUnsafeMutableBytes { buffer in
      guard let base = unsafe buffer.bindMemory(to: CChar.self).baseAddress else { return }
      _ = unsafe gethostname(base, buffer.count - 1)
    }
    return Label(name.prefix { $0 != 0 }) ?? Label("Linux")
  }
}
