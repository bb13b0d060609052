import CLiboath
import OneTimePassword

extension Fuzzer {
  /// Our codes and those of liboath, an independent peer, for any secret, counter, time and period.
  static let codes = Fuzzer(name: "codes") { input in
    var input = Input(input)
    let choice = input.byte()
    let algorithm = HashAlgorithm.allCases[Int(choice >> 2) % 3]
    let digits = Digits.allCases[Int(choice >> 4) % 3]
    let isHOTP = choice & 1 == 0
    let counter = input.number64()
    let period = UInt32(15 + Int(input.byte()) % 286)
    let key = input.remaining()
    guard (1...1024).contains(key.count) else { return }
    let ours = succeeds("a code") { () throws(CryptoError) in
      let generator = try CodeGenerator(
        secret: secret(key), algorithm: isHOTP ? .sha1 : algorithm, digits: digits)
      let position = isHOTP ? counter : timeStep(at: Int64(counter >> 1), period: period)
      return try generator.code(at: position)
    }
    let theirs =
      isHOTP
      ? hotp(key, counter, digits) : totp(key, Int(counter >> 1), period, digits, algorithm)
    must(ours < digits.modulus, "a code with too many digits")
    must(String(ours + digits.modulus).dropFirst() == theirs, "\(ours), by liboath \(theirs)")
  }
}

private func hotp(_ key: [UInt8], _ counter: UInt64, _ digits: Digits) -> String {
  text { output in
    key.withUnsafeBytes {
      oath_hotp_generate(
        $0.baseAddress, $0.count, counter, UInt32(digits.rawValue), false, Int.max, output)
    }
  }
}

private func totp(
  _ key: [UInt8], _ time: Int, _ period: UInt32, _ digits: Digits, _ algorithm: HashAlgorithm
) -> String {
  let hash: CInt =
    switch algorithm {
    case .sha1: 0
    case .sha256: CInt(OATH_TOTP_HMAC_SHA256.rawValue)
    case .sha512: CInt(OATH_TOTP_HMAC_SHA512.rawValue)
    }
  return text { output in
    key.withUnsafeBytes {
      oath_totp_generate2(
        $0.baseAddress, $0.count, time, period, 0, UInt32(digits.rawValue), hash, output)
    }
  }
}

private func text(_ generate: (UnsafeMutablePointer<CChar>) -> CInt) -> String {
  var output = [CChar](repeating: 0, count: 16)
  let result = output.withUnsafeMutableBufferPointer { buffer in
    buffer.baseAddress.map(generate) ?? -1
  }
  must(result == 0, "liboath: \(result)")
  return String(decoding: output.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
