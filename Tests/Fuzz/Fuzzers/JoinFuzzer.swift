import FleetProtocol
import OneTimePassword
import SallyportCore

extension Fuzzer {
  /// What reads as a token, a request to join or an answer is written the same. The first byte says
  /// which of them the rest is.
  static let join = Fuzzer(name: "join") { input in
    var input = Input(input)
    let kind = input.byte() % 4
    let rest = input.remaining()
    switch kind {
    case 0: checkToken(rest)
    case 1:
      guard let request = JoinRequest.decode(secret(rest)) else { return }
      must(request.names.count <= JoinRequest.mostNames, "too many names")
      let again = unwrapped(request.encoded(), "does not write what it read")
      must(bytes(again) == rest, "a request is written otherwise")
    case 2:
      guard let answer = JoinAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "an answer")
    case _:
      guard let status = FleetStatusAnswer.decode(rest) else { return }
      must(unwrapped(status.encoded(), "does not write what it read") == rest, "a status")
    }
  }
}

private func checkToken(_ text: [UInt8]) {
  guard let token = try? JoinToken.read(secret(text)) else { return }
  must((1...JoinToken.mostVerifiers).contains(token.verifiers.count), "how many verifiers")
  must(token.pin.count == 32 && token.secret.count == 16, "a short one")
  let again = bytes(succeeds("is written") { () throws(CryptoError) in try token.written() })
  let isBlank: (UInt8) -> Bool = { $0 == 0x20 || (9...13).contains($0) }
  let bare = text.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
  must(again == Array(bare), "a token is written otherwise")
}
