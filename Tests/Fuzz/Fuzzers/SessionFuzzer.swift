import OneTimePassword
import SallyportCore
import SessionProtocol

extension Fuzzer {
  /// What reads as a frame of either side is written the same, within its bounds. The first byte
  /// says of which.
  static let session = Fuzzer(name: "session") { input in
    var input = Input(input)
    let isOfUser = input.byte() % 2 == 0
    let frame = input.remaining()
    if isOfUser {
      guard let message = FromUser.decode(secret(frame)) else { return }
      if case .change(.enroll(_, _, let codes)) = message {
        must(codes <= BackupCodeSet.maximumCodes, "too many backup codes")
      }
      let again = unwrapped(message.encoded(), "does not write what it read")
      must(bytes(again) == frame, "a user's is written otherwise")
    } else {
      guard let message = FromSession.decode(secret(frame)) else { return }
      let again = unwrapped(message.encoded(), "does not write what it read")
      must(bytes(again) == frame, "a session's is written otherwise")
    }
  }
}
