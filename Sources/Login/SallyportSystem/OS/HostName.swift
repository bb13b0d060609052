internal import CSystem
package import SallyportCore

/// The name of this machine: the issuer in otpauth URIs, and in messages.
package enum HostName {
  /// The host name; `Linux` if it is empty or cannot be shown.
  package static var label: Label {
    var name = [UInt8](repeating: 0, count: 256)
    // SAFETY: the buffer has as many bytes as are passed.
    unsafe name.withUnsafeMutableBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      unsafe sys_host_name(base, buffer.count)
    }
    return Label(name.prefix { $0 != 0 }) ?? Label("Linux")
  }
}
