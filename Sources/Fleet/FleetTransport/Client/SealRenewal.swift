import OneTimePassword
import SallyportCore
import SallyportSupport

extension VerifierPool {
  /// What the keeper does for the seals of this host: it writes down what was noted, and fetches
  /// the keys that the verifiers have and this host has not.
  func renewSeal() {
    guard let seal else { return }
    _ = seal.save()
    if seal.isBehind, let keys = fetchKeys() { _ = seal.take(keys) }
    if let complaint = seal.complaint() { ServiceLog.error(complaint) }
  }
}

extension FleetVerifiers {
  /// The keys that the verifiers have for this host now; nil: none could be had. They are asked for
  /// under the keys of before, where the host has some, else by TLS alone: that is not answered any
  /// more once the host has sealed a question.
  package func fetchKeys(within milliseconds: UInt64 = 1000) -> SealKeys? {
    guard let body = Secret(count: 0) else { return nil }
    do throws(TransportFault) {
      let answer = try ask(.keys, body, within: milliseconds)
      guard answer.answers(.keys), let bytes = Secret(answer.body) else { return nil }
      return SealKeys.decode(bytes)
    } catch {
      return nil
    }
  }
}
