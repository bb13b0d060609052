internal import CSystem
package import SallyportCore

/// What this machine calls itself: the issuer in otpauth URIs, and in what people read.
package enum HostName {
  /// The machine's own name, where it can be shown as it is; else `Linux`.
  package static var label: Label {
    var name = [UInt8](repeating: 0, count: 256)
    // SAFETY: the buffer has as many bytes as are said.
    unsafe name.withUnsafeMutableBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      unsafe sys_host_name(base, buffer.count)
    }
    return Label(name.prefix { $0 != 0 }) ?? Label("Linux")
  }
}
