import OneTimePassword
import SallyportAdministration

extension Fuzzer {
  /// What reads as a URI writes to one that reads to the same authenticator, complete or for a QR
  /// code; what does not gives a reason.
  // shows: hostile-uri
  static let otpauthURI = Fuzzer(name: "otpauth-uri") { input in
    let uri: OtpauthURI
    do throws(OtpauthURI.Error) {
      uri = try OtpauthURI(input)
    } catch {
      must(error != .outOfMemory, "out of memory")
      if case .percentEncoding(let offset) = error {
        must(input.indices.contains(offset) && input[offset] == UInt8(ascii: "%"), "\(error)")
      }
      return
    }
    must((1...1024).contains(uri.secret.count), "a secret of \(uri.secret.count) bytes")
    if case .totp(let period) = uri.parameters.type {
      must(CodeParameters.periods.contains(period) && uri.counter == 0, "\(uri.parameters)")
    }
    for short in [false, true] {
      let text = unwrapped(uri.text(omittingDefaults: short), "does not write")
      must(bytes(text).allSatisfy { (0x21...0x7e).contains($0) }, "writes what is no URI")
      let again = succeeds("does not read what it wrote") { () throws(OtpauthURI.Error) in
        try OtpauthURI(text)
      }
      must(
        again.issuer == uri.issuer && again.account == uri.account
          && again.parameters == uri.parameters && again.counter == uri.counter
          && constantTimeEquals(again.secret, uri.secret), "reads another URI than it wrote")
    }
  }
}
