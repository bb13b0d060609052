import OneTimePassword
import SallyportCore
import TestSupport
import Testing

func label(_ text: String) throws -> Label { try #require(Label(Array(text.utf8))) }

/// The secret of the RFCs' examples, as long as the output of the hash.
func example(_ algorithm: HashAlgorithm = .sha1) throws -> Secret {
  try example(algorithm.secretLength)
}

func parameters(
  _ type: AuthenticatorType = .totp(period: 30), _ algorithm: HashAlgorithm = .sha1,
  _ digits: Digits = .six
) throws -> CodeParameters {
  try #require(CodeParameters(type: type, algorithm: algorithm, digits: digits))
}

func authenticator(
  _ id: UInt64 = 1, _ name: String = "phone", _ parameters: CodeParameters = .standard,
  secret: Secret? = nil, last: UInt64? = nil, clockOffset: Int32? = nil
) throws -> Authenticator {
  Authenticator(
    id: id, name: try label(name), parameters: parameters,
    secret: try secret ?? example(parameters.algorithm), initialLastAccepted: last,
    created: UnixTime(1_700_000_000), clockOffset: clockOffset)
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

/// No state that can be read has more in it.
func largestState() throws -> LoginState {
  let long = try label(String(repeating: "x", count: 64))
  let use = Use(
    time: UnixTime(.max), origin: .address(NetworkAddress(high: 1, low: 0)), service: long)
  return LoginState(
    enrollmentID: .max,
    authenticators: (1...8).map {
      AuthenticatorState(
        id: $0, lastAccepted: .max, drift: .min, lastUse: use,
        clock: TokenClock(offset: -60_000, since: UnixTime(.min)))
    },
    backupCodes: BackupCodeState(setID: .max, used: .max, lastUse: use),
    passes: (1...3).map { PassState(id: $0, used: .max, seen: UnixTime(.max)) },
    known: Bucket(spent: GuessProbability(units: .max), since: UnixTime(.min)),
    other: Bucket(spent: GuessProbability(units: .max), since: UnixTime(.max)),
    slip: Slip(
      authenticator: .max, position: .max, time: UnixTime(.max),
      amount: GuessProbability(units: .max)),
    refunds: Refunds(last: UnixTime(.max), second: UnixTime(.max), third: UnixTime(.min)),
    // As many as are read.
    origins: (1...32).map {
      KnownOrigin(origin: NetworkAddress(high: $0, low: 0), lastSeen: UnixTime(.min))
    },
    remembered: (1...10).map {
      RememberedOrigin(
        origin: NumericAddress(high: $0, low: .max), service: long, granted: UnixTime(.max))
    })
}
