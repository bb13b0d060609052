import Foundation
import OneTimePassword
import SallyportCore
import Testing

/// The lines of a file in Tests/Vectors without its comments.
func vectorLines(_ name: String) throws -> [String] {
  let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Vectors/" + name)
  return try String(contentsOf: file, encoding: .utf8)
    .split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
}

func secret(_ bytes: some Collection<UInt8>) throws -> Secret { try #require(Secret(bytes)) }
func secret(_ text: String) throws -> Secret { try secret(Array(text.utf8)) }
func bytes(_ secret: Secret) -> [UInt8] { (0..<secret.count).map { secret[$0] } }
func text(_ secret: Secret) -> String { String(decoding: bytes(secret), as: UTF8.self) }
func label(_ text: String) throws -> Label { try #require(Label(Array(text.utf8))) }

/// The secret of the RFCs' examples, as long as the output of the hash.
func example(_ algorithm: HashAlgorithm = .sha1) throws -> Secret {
  try secret((0..<algorithm.secretLength).map { UInt8(ascii: "0") + UInt8(($0 + 1) % 10) })
}

func parameters(
  _ type: AuthenticatorType = .totp(period: 30), _ algorithm: HashAlgorithm = .sha1,
  _ digits: Digits = .six
) throws -> CodeParameters {
  try #require(CodeParameters(type: type, algorithm: algorithm, digits: digits))
}

func authenticator(
  _ id: UInt64 = 1, _ name: String = "phone", _ parameters: CodeParameters = .standard,
  secret: Secret? = nil, last: UInt64? = nil
) throws -> Authenticator {
  Authenticator(
    id: id, name: try label(name), parameters: parameters,
    secret: try secret ?? example(parameters.algorithm), initialLastAccepted: last,
    created: UnixTime(1_700_000_000))
}

func enrollment(_ authenticators: [Authenticator], backupCodes: BackupCodeSet? = nil) throws
  -> Enrollment
{
  Enrollment(
    id: 0xe0e0, user: try #require(UserName(Array("alice".utf8))), uid: 1000,
    created: UnixTime(1_700_000_000), authenticators: authenticators, backupCodes: backupCodes)
}

/// A set of backup codes from the codes as they are kept: upper case, no hyphens.
func backupCodes(_ codes: [String], scratch: [String] = [], id: UInt64 = 0xb0b0) throws
  -> BackupCodeSet
{
  let salt = [UInt8](0..<16)
  return BackupCodeSet(
    id: id, salt: salt,
    digests: try codes.map { try hmacSHA256(key: salt, message: secret($0)) },
    scratchDigests: try scratch.map { try hmacSHA256(key: salt, message: secret($0)) })
}

extension Decision {
  var refusal: Refusal? { if case .refuse(let refusal) = verdict { refusal } else { nil } }
  var isWrongCode: Bool { if case .wrongCode = refusal { true } else { false } }
  var proof: Proof? { if case .accept(let proof) = verdict { proof } else { nil } }
}
