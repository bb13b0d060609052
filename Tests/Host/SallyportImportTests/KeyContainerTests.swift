import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@testable import SallyportImport

/// The files are of python-pskc 1.4, another implementation of RFC 6030.
@Suite struct `A key container` {
  private func vector(_ name: String) throws -> String {
    try textOfSources("Tests/Vectors/tokens/\(name).pskc.xml")
  }

  private func read(_ text: String, by secret: ContainerSecret? = nil) throws -> KeyContainer {
    try KeyContainer(TestSupport.secret(text), by: secret, period: 60)
  }

  private func key(_ hex: String) throws -> ContainerSecret {
    let text = try TestSupport.secret(hex)
    return .key(
      try TestSupport.secret(try #require(text.octets(hex.count / 2, spelledIn: 0..<hex.count))))
  }

  private let right = "12345678901234567890123456789012"

  @Test(arguments: ["plain", "key", "passphrase"])
  func `is read plain and encrypted by both`(name: String) throws {
    let secret: ContainerSecret? =
      switch name {
      case "key": try key(right)
      case "passphrase": .passphrase(try TestSupport.secret("qwerty"))
      case _: nil
      }
    let container = try read(vector(name), by: secret)
    let (first, second) = (container.tokens[0], container.tokens[1])
    #expect(container.tokens.count == 2 && container.unheeded.isEmpty)
    #expect(first.serial.text == "987654321" && second.serial.text == "987654322")
    #expect(TestSupport.text(first.secret) == "12345678901234567890")
    #expect(TestSupport.text(second.secret) == "abcdefghijklmnopqrst")
    #expect(first.parameters == .standard)
    #expect(second.parameters == CodeParameters(type: .hotp, algorithm: .sha1, digits: .eight))
    #expect(second.lastAccepted == 4)
  }

  /// RFC 6030, figures 6 and 7.
  // shows: key-container
  @Test(arguments: [
    (
      "", "ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX",
      "AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv",
      "Su+NvtQfmvfJzF6bmQiJqoLRExc="
    ),
    (
      "qwerty", "2GTTnLwM3I4e5IO5FkufoOEiOhNj91fhKRQBtBJYluUDsPOLTfUvoU2dStyOwYZx",
      "oTvo+S22nsmS2Z/RtcoF8Hfh+jzMe0RkiafpoDpnoZTjPYZu6V+A4aEn032yCr4f",
      "LP6xMvjtypbfT9PdkJhBZ+D6O4w="
    ),
  ]) func `is decrypted as in the RFC`(
    passphrase: String, macKey: String, cipher: String, mac: String
  ) throws {
    let derived = """
      <xenc11:DerivedKey><xenc11:KeyDerivationMethod
      Algorithm="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2">
      <pkcs5:PBKDF2-params><Salt><Specified>Ej7/PEpyEpw=</Specified></Salt>
      <IterationCount>1000</IterationCount><KeyLength>16</KeyLength><PRF/></pkcs5:PBKDF2-params>
      </xenc11:KeyDerivationMethod></xenc11:DerivedKey>
      """
    let aes = "<xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#aes128-cbc\"/>"
    func value(_ text: String) -> String {
      "\(aes)<xenc:CipherData><xenc:CipherValue>\n \(text)\n</xenc:CipherValue></xenc:CipherData>"
    }
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!-- made up -->
      <pskc:KeyContainer Version="1.0"><pskc:EncryptionKey>\(passphrase.isEmpty ? "" : derived)
      </pskc:EncryptionKey>
      <pskc:MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1">
      <pskc:MACKey>\(value(macKey))
      </pskc:MACKey></pskc:MACMethod>
      <pskc:KeyPackage><pskc:DeviceInfo><pskc:SerialNo>987654321</pskc:SerialNo></pskc:DeviceInfo>
      <pskc:Key Id="12345678" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
      <pskc:Data><pskc:Secret>
      <pskc:EncryptedValue>\(value(cipher))</pskc:EncryptedValue>
      <pskc:ValueMAC>\(mac)</pskc:ValueMAC></pskc:Secret></pskc:Data></pskc:Key></pskc:KeyPackage>
      </pskc:KeyContainer>
      """
    let secret: ContainerSecret =
      passphrase.isEmpty ? try key(right) : .passphrase(try TestSupport.secret(passphrase))
    #expect(TestSupport.text(try read(text, by: secret).tokens[0].secret) == "12345678901234567890")
    for wrong in [
      text.replacingOccurrences(of: mac, with: "AAAA" + mac.dropFirst(4)),
      text.replacingOccurrences(of: cipher, with: "BBBB" + cipher.dropFirst(4)),
    ] {
      #expect(throws: KeyContainer.Error.wrongKey) { try self.read(wrong, by: secret) }
    }
    #expect(throws: KeyContainer.Error.keyWanted(passphrase: !passphrase.isEmpty)) {
      try self.read(text)
    }
    let other: ContainerSecret =
      passphrase.isEmpty ? .passphrase(try TestSupport.secret("x")) : try key(right)
    #expect(throws: KeyContainer.Error.otherKeyWanted(passphrase: !passphrase.isEmpty)) {
      try self.read(text, by: other)
    }
    let long = text.replacingOccurrences(of: "aes128", with: "aes256")
    #expect(throws: KeyContainer.Error.unsupported("aes256-cbc by a key of 16 bytes")) {
      try self.read(long, by: secret)
    }
    // The key of its MAC has 20 bytes.
    let weak = text.replacingOccurrences(of: "hmac-sha1", with: "hmac-sha256")
    #expect(throws: KeyContainer.Error.unsupported("a MAC by a key of 20 bytes")) {
      try self.read(weak, by: secret)
    }
    let elsewhere = text.replacingOccurrences(
      of: "<pskc:MACKey>\(value(macKey))\n</pskc:MACKey>", with: "<pskc:MACKeyReference/>")
    #expect(throws: KeyContainer.Error.unsupported("a MAC by a key that is elsewhere")) {
      try self.read(elsewhere, by: secret)
    }
    let noMAC = text.replacingOccurrences(of: "MACMethod", with: "NoMethod")
    #expect(throws: KeyContainer.Error.unsupported("values without a MAC")) {
      try self.read(noMAC, by: secret)
    }
  }

  @Test func `has a key that a file can be read as`() throws {
    for (text, told) in [
      ("31323334353637383930313233343536\n", ["16 hexadecimal", "24 base64", "32 bytes"]),
      ("0x31323334 35363738\n39303132 33343536", ["16 hexadecimal"]),
      ("MTIzNDU2Nzg5MDEyMzQ1Ng==\n", ["16 base64", "24 bytes"]),
      ("+-1234567890123\0\n", ["16 bytes"]), ("12345", []), ("", []), ("0x", []),
    ] {
      let keys = ContainerKeyForm.keys(in: try TestSupport.secret(text))
      #expect(keys.map { "\($0.key.count) \($0.form)" } == told, "\(text)")
      #expect(
        keys.first.map { $0.form == .bytes || TestSupport.text($0.key) == "1234567890123456" }
          != false)
    }
  }

  // shows: key-container
  @Test func `by a wrong key or passphrase gives nothing`() throws {
    for (name, secret) in [
      ("key", try key("22345678901234567890123456789012")),
      ("passphrase", .passphrase(try TestSupport.secret("qwertz"))),
    ] as [(String, ContainerSecret)] {
      #expect(throws: KeyContainer.Error.wrongKey) { try self.read(self.vector(name), by: secret) }
    }
  }

  @Test func `with a secret as it is, is refused where it should be encrypted`() throws {
    #expect(try read(plain("")).tokens.count == 1)
    let given = try key(right)
    let sealed = plain("").replacingOccurrences(
      of: "<KeyPackage>", with: "<EncryptionKey/><KeyPackage>")
    for error in [
      #expect(throws: KeyContainer.Error.self) { try self.read(self.plain(""), by: given) },
      #expect(throws: KeyContainer.Error.self) { try self.read(sealed) },
    ] {
      #expect(error.map { "\($0)" }?.contains("its secret is not encrypted") == true)
    }
  }

  private func plain(_ key: String, algorithm: String = "totp", more: String = "") -> String {
    """
    <KeyContainer Version="1.0">
    <KeyPackage><DeviceInfo><SerialNo>1</SerialNo></DeviceInfo>
    <Key Id="a" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:\(algorithm)">\(key)
    <Data><Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>\(more)</Data>
    </Key></KeyPackage></KeyContainer>
    """
  }

  @Test func `tells digits, hash, step and drift`() throws {
    let asked = """
      <AlgorithmParameters><Suite>HMAC-SHA256</Suite><ResponseFormat Length="8" Encoding="DECIMAL"/>
      </AlgorithmParameters><UserId>CN=alice</UserId>
      """
    let drift = "<TimeDrift><PlainValue>-3</PlainValue></TimeDrift>"
    let token = try read(plain(asked, more: drift)).tokens[0]
    // The time step is that of the option: the file has none.
    #expect(
      token.parameters
        == CodeParameters(type: .totp(period: 60), algorithm: .sha256, digits: .eight))
    #expect(token.clockOffset == -180 && token.user == Array("CN=alice".utf8))
    // A count of steps that had passed, not where they begin; digits by their number.
    let passed = plain("", more: "<Time><PlainValue>58000000</PlainValue></Time>")
      .replacingOccurrences(
        of: "<SerialNo>1<", with: "<SerialNo>&#49;&#x32;&#x;<![CDATA[&#51;&amp;]]><")
    #expect(throws: KeyContainer.Error.self) {
      try self.read(passed.replacing("#x;", with: "#47;"))
    }
    let counted = try read(passed.replacing("&#x;", with: "")).tokens[0]
    #expect(counted.serial.text == "12&#51;&amp;" && counted.lastAccepted == nil)
    let noted = try read(plain("<Policy><ExpiryDate>2027-01-01T00:00:00Z</ExpiryDate></Policy>"))
    #expect(noted.unheeded == ["when a key expires is ignored"])
    let signed = plain("").replacingOccurrences(
      of: "</KeyContainer>", with: "<ds:Signature/></KeyContainer>")
    #expect(try read(signed).unheeded == ["its signature is not checked"])
  }

  @Test(arguments: [
    (
      "<AlgorithmParameters><ChallengeFormat/></AlgorithmParameters>", "totp", "",
      "it answers challenges"
    ),
    ("", "ocra", "", "neither hotp nor totp: ocra"),
    (
      "<Policy><PINPolicy PINUsageMode=\"Append\"/></Policy>", "totp", "",
      "its codes need a PIN"
    ),
    ("<Policy><KeyUsage>CR</KeyUsage></Policy>", "totp", "", "its key is not for codes"),
    ("<Policy><Moon/></Policy>", "totp", "", "it has a rule of use that is not supported: Moon"),
    (
      "<AlgorithmParameters><ResponseFormat Encoding=\"ALPHANUMERIC\"/></AlgorithmParameters>",
      "totp",
      "", "its codes are not decimal"
    ),
    (
      "<AlgorithmParameters><ResponseFormat CheckDigit=\"1\"/></AlgorithmParameters>", "totp", "",
      "its codes have a check digit"
    ),
    (
      "<AlgorithmParameters><ResponseFormat CheckDigits=\"true\"/></AlgorithmParameters>", "totp",
      "",
      "its codes have a check digit"
    ),
    (
      "<AlgorithmParameters><ResponseFormat Length=\"9\"/></AlgorithmParameters>", "totp", "",
      "not 6, 7 or 8 digits"
    ),
    ("", "totp", "<Secret/>", "a second Secret in one package"),
    ("", "totp", "</Data><Data>", "a second Data in one package"),
    ("", "totp", "</Data></Key><Key><Data>", "a second Key in one package"),
    (
      "", "totp", "<TimeInterval><PlainValue>5</PlainValue></TimeInterval>",
      "not a time step of 15 to 300 seconds"
    ),
    (
      "", "totp", "<TimeDrift><PlainValue>201</PlainValue></TimeDrift>",
      "its clock is off by 201 steps, at most 200 are accepted"
    ),
    ("", "hotp", "<Counter><EncryptedValue/></Counter>", "an encrypted Counter"),
    ("", "hotp", "<Counter><PlainValue>-1</PlainValue></Counter>", "not a counter"),
  ]) func `that asks for what is not done says what`(
    key: String, algorithm: String, more: String, told: String
  ) throws {
    do throws(KeyContainer.Error) {
      let text = try? TestSupport.secret(plain(key, algorithm: algorithm, more: more))
      guard let text else { return }
      _ = try KeyContainer(text, by: nil, period: 30)
      Issue.record("it was read")
    } catch {
      guard case .problems(let problems) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(problems.map(\.text) == [told])
    }
  }

  // shows: key-container
  @Test(
    arguments: [
      ("", .notXML(line: 1)), ("<a>", .notXML(line: 1)), ("<a></b>", .notXML(line: 1)),
      ("<!DOCTYPE x [<!ENTITY e \"x\">]><a/>", .notXML(line: 1)), ("\n\n<a", .notXML(line: 3)),
      ("<a/><b/>", .notXML(line: 1)), ("<a b=c/>", .notXML(line: 1)), ("x<a/>", .notXML(line: 1)),
      ("<a/>", .notContainer), ("<KeyContainer Version=\"2\"/>", .notContainer),
      ("<KeyContainer Version=\"1.0\"/>", .empty),
    ] as [(String, KeyContainer.Error)])
  func `that is none is refused`(text: String, wanted: KeyContainer.Error) throws {
    #expect(throws: wanted) { try self.read(text) }
  }

  @Test func `is refused with too many elements or attributes`() {
    let elements = String(repeating: "<a/>", count: XMLText.mostElements)
    let attributes = String(repeating: " a=''", count: 3) + (0...64).map { " a\($0)=''" }.joined()
    for text in ["<KeyContainer>\(elements)</KeyContainer>", "<KeyContainer\(attributes)/>"] {
      #expect(
        throws: KeyContainer.Error.unsupported("too many elements or attributes")
      ) { try self.read(text) }
    }
  }

  @Test func `of a device with two keys goes by their ids`() throws {
    let package = { (id: String) in
      """
      <KeyPackage><DeviceInfo><SerialNo>508326</SerialNo></DeviceInfo>
      <Key Id="\(id)" Algorithm="x:hotp">
      <Data><Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret></Data>
      </Key></KeyPackage>
      """
    }
    let text =
      "<KeyContainer Version=\"1.0\">\(package("508326:1"))\(package("508326:2"))</KeyContainer>"
    #expect(try read(text).tokens.map(\.serial.text) == ["508326:1", "508326:2"])
  }

  @Test func `of any bytes is read or refused`() throws {
    let whole = Array(try vector("plain").utf8)
    var random = Seeded(6030)
    for count in stride(from: 0, to: whole.count, by: 7) {
      _ = try? KeyContainer(TestSupport.secret(Array(whole.prefix(count))), by: nil, period: 30)
      var changed = whole
      changed[random.number(0...whole.count - 1)] = random.byte()
      _ = try? KeyContainer(TestSupport.secret(changed), by: nil, period: 30)
    }
  }
}
