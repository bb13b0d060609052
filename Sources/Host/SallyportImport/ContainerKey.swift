import CDecryption
package import OneTimePassword
import SallyportAdministration
import SallyportCore

/// How the secrets of a key container are encrypted (RFC 6030 §6), and what decrypts them.
struct ContainerKey {
  private let key: Secret
  private let mac: (hash: HashAlgorithm, key: Secret)

  /// Why nothing can be decrypted.
  enum Error: Swift.Error, Equatable {
    /// Neither a key nor a passphrase was given; whether it takes a passphrase.
    case wanted(passphrase: Bool)
    /// The other one was given.
    case other(passphrase: Bool)
    /// It asks for what is not done: the name of that.
    case unsupported(String)
    /// The key is wrong, or the file was changed.
    case wrong
    case outOfMemory
  }

  /// `root`: the KeyContainer.
  init(_ root: XMLElement, _ text: XMLText, _ secret: ContainerSecret?) throws(Error) {
    key = try ContainerKey.key(root["EncryptionKey"], text, secret)
    guard let method = root["MACMethod"] else { throw .unsupported("values without a MAC") }
    let hash: HashAlgorithm
    switch ContainerKey.word(method.attributes["Algorithm"]) {
    case "hmac-sha1": hash = .sha1
    case "hmac-sha256": hash = .sha256
    case "hmac-sha512": hash = .sha512
    case let other: throw .unsupported("the MAC \(other)")
    }
    // RFC 6030 §6.1.1 leaves it to an agreement what a MAC without a key of its own is made by:
    // others take the key of the encryption.
    guard let macKey = method["MACKey"] else {
      if method["MACKeyReference"] != nil { throw .unsupported("a MAC by a key that is elsewhere") }
      mac = (hash, key)
      return
    }
    let own = try ContainerKey.decrypted(macKey, text, by: key)
    // A shorter one can be tried out (RFC 2104 §3).
    guard own.count >= hash.secretLength else {
      throw .unsupported("a MAC by a key of \(own.count) bytes")
    }
    mac = (hash, own)
  }

  private static func key(_ element: XMLElement?, _ text: XMLText, _ secret: ContainerSecret?)
    throws(Error) -> Secret
  {
    let derived = element?["DerivedKey"]
    switch secret {
    case nil: throw .wanted(passphrase: derived != nil)
    case .key(let key):
      if derived != nil { throw .other(passphrase: true) }
      return key
    case .passphrase(let passphrase):
      guard let derived else { throw .other(passphrase: false) }
      return try derive(derived["KeyDerivationMethod"], text, passphrase)
    }
  }

  /// PBKDF2 (RFC 6030 §6.2, RFC 2898), as XML Encryption 1.1 writes it.
  private static func derive(_ method: XMLElement?, _ text: XMLText, _ passphrase: Secret)
    throws(Error) -> Secret
  {
    let name = word(method?.attributes["Algorithm"])
    guard name == "pbkdf2", let values = method?["PBKDF2-params"] else {
      throw .unsupported("the key derivation \(name)")
    }
    let hash: Int32
    // By the schema an attribute; others write it as text.
    let function = values["PRF"]?.attributes["Algorithm"] ?? text.string(values["PRF"]) ?? ""
    switch function.isEmpty ? "hmac-sha1" : word(function) {
    case "hmac-sha1": hash = 160
    case "hmac-sha256": hash = 256
    case "hmac-sha512": hash = 512
    case let other: throw .unsupported("PBKDF2 with \(other)")
    }
    let count = number(values["IterationCount"], text)
    guard (1...2_000_000).contains(count) else { throw .unsupported("\(count) iterations") }
    let length = values["KeyLength"] == nil ? 16 : number(values["KeyLength"], text)
    guard [16, 24, 32].contains(length) else { throw .unsupported("a key of \(length) bytes") }
    guard let salt = text.secret(values.at("Salt", "Specified")).flatMap(Base64.decode) else {
      throw .unsupported("a salt that is not specified")
    }
    guard let key = Secret(count: length) else { throw .outOfMemory }
    // SAFETY: each buffer has the number of bytes that is passed, and lives for the call.
    let done = unsafe passphrase.withBytes { passphrase in
      unsafe salt.withBytes { salt in
        unsafe key.withMutableBytes { key in
          guard let phrase = passphrase.baseAddress, let grains = salt.baseAddress,
            let to = key.baseAddress
          else { return Int32(0) }
          return unsafe container_derive(
            hash, phrase, passphrase.count, grains, salt.count, Int32(count), to, length)
        }
      }
    }
    guard done == 1 else { throw .wrong }
    return key
  }

  private static func number(_ element: XMLElement?, _ text: XMLText) -> Int {
    text.string(element).flatMap { Int($0) } ?? 0
  }

  /// What follows the last `#` or `:`, in lower case.
  static func word(_ algorithm: String?) -> String {
    let all = (algorithm ?? "").lowercased()
    return all.split { $0 == "#" || $0 == ":" }.last.map(String.init) ?? "none"
  }

  // MARK: values

  /// The value that an `EncryptedValue` has; `mac`: its `ValueMAC`, which must be right.
  func value(of encrypted: XMLElement, mac code: XMLElement?, _ text: XMLText) throws(Error)
    -> Secret
  {
    guard let wanted = text.secret(code).flatMap(Base64.decode) else {
      throw .unsupported("values without a MAC")
    }
    let cipher = try ContainerKey.cipher(encrypted, text, key)
    guard let code = try? hmac(mac.hash, key: mac.key, message: cipher),
      constantTimeEquals(code, wanted)
    else { throw .wrong }
    return try ContainerKey.decrypted(cipher, by: key)
  }

  private static func cipher(_ element: XMLElement, _ text: XMLText, _ key: Secret)
    throws(Error) -> Secret
  {
    let method = word(element["EncryptionMethod"]?.attributes["Algorithm"])
    let lengths = ["aes128-cbc": 16, "aes192-cbc": 24, "aes256-cbc": 32]
    guard let length = lengths[method] else { throw .unsupported("the encryption \(method)") }
    guard key.count == length else {
      throw .unsupported("\(method) by a key of \(key.count) bytes")
    }
    let value = text.secret(element.at("CipherData", "CipherValue"))
    guard let cipher = value.flatMap(Base64.decode), cipher.count >= 32,
      cipher.count.isMultiple(of: 16)
    else { throw .wrong }
    return cipher
  }

  private static func decrypted(_ element: XMLElement, _ text: XMLText, by key: Secret)
    throws(Error) -> Secret
  {
    try decrypted(try cipher(element, text, key), by: key)
  }

  /// The first block is the initialization vector; the last byte says how many bytes pad the last
  /// block (RFC 6030 §6.4, XML Encryption 1.1 §5.2).
  private static func decrypted(_ cipher: Secret, by key: Secret) throws(Error) -> Secret {
    guard let vector = cipher.slice(0..<16), let input = cipher.slice(16..<cipher.count),
      let output = Secret(count: input.count)
    else { throw .outOfMemory }
    // SAFETY: as in `derive`; the output is as long as the input.
    let done = unsafe key.withBytes { key in
      unsafe vector.withBytes { vector in
        unsafe input.withBytes { input in
          unsafe output.withMutableBytes { output in
            guard let bytes = key.baseAddress, let vector = vector.baseAddress,
              let from = input.baseAddress, let to = output.baseAddress
            else { return Int32(0) }
            return unsafe container_decrypt(bytes, key.count, vector, from, input.count, to)
          }
        }
      }
    }
    let padding = Int(output[output.count - 1])
    guard done == 1, (1...16).contains(padding), padding < output.count || output.count > 16,
      let value = output.slice(0..<output.count - padding)
    else { throw .wrong }
    return value
  }
}

/// What decrypts a key container.
package enum ContainerSecret: Sendable {
  /// 16, 24 or 32 bytes.
  case key(Secret)
  case passphrase(Secret)
}

/// Base64 (RFC 4648 §4), of secrets.
enum Base64 {
  /// nil for anything else, and if memory is short.
  static func decode(_ text: Secret) -> Secret? {
    var count = text.count
    while count > 0, text.count - count < 2, text[count - 1] == UInt8(ascii: "=") { count -= 1 }
    guard count % 4 != 1, text.count.isMultiple(of: 4) || text.count == count,
      let bytes = Secret(count: count * 3 / 4)
    else { return nil }
    var (pending, bits, place) = (UInt32(0), UInt32(0), 0)
    for index in 0..<count {
      guard let value = value(text[index]) else { return nil }
      (pending, bits) = ((pending << 6 | UInt32(value)) & 0xffff, bits + 6)
      if bits >= 8 {
        bits -= 8
        bytes.set(place, to: UInt8(truncatingIfNeeded: pending >> bits))
        place += 1
      }
    }
    return bytes
  }

  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    case _: nil
    }
  }
}
