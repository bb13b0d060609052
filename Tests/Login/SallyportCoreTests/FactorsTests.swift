import OneTimePassword
import SallyportCore
import Testing

private func factors(_ kinds: [FactorKind]) -> Factors {
  kinds.reduce(into: Factors()) { $0.insert($1) }
}

@Suite struct `The factors that an enrollment lacks` {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let have: [FactorKind]
    let lacks: [FactorKind]
    let policy: @Sendable (inout Policy) -> Void

    init(
      _ sentence: String, have: [FactorKind], lacks: [FactorKind],
      _ policy: @escaping @Sendable (inout Policy) -> Void = { _ in }
    ) {
      (testDescription, self.have, self.lacks, self.policy) = (sentence, have, lacks, policy)
    }
  }

  @Test(arguments: [
    Case("none has an authenticator to make", have: [], lacks: [.totp]),
    Case("one authenticator is enough", have: [.hotp], lacks: []),
    Case("backup codes are no authenticator", have: [.backupCode], lacks: [.totp]),
    Case("one that is off does not count", have: [.totp], lacks: [.hotp]) { $0.totp = .off },
    Case("the order says which is made", have: [], lacks: [.hotp]) {
      $0.factorOrder = FactorOrder(number: 1 * 9 + 0 * 3 + 2) ?? .usual
    },
    Case("what is mandatory must be there", have: [.totp], lacks: [.backupCode]) {
      $0.backupCode = .mandatory
    },
    Case("what is mandatory and there is not made again", have: [.totp, .hotp], lacks: []) {
      $0.hotp = .mandatory
    },
    Case("two are made up to two, in their order", have: [.totp], lacks: [.hotp]) {
      $0.minimumFactors = 2
    },
    Case("three are all", have: [], lacks: [.totp, .hotp, .backupCode]) { $0.minimumFactors = 3 },
    Case("one that is off makes no second", have: [.totp], lacks: [.backupCode]) {
      ($0.hotp, $0.minimumFactors) = (.off, 2)
    },
  ])
  func `are what the policy asks for`(the: Case) {
    var policy = Policy()
    the.policy(&policy)
    #expect(policy.missing(from: factors(the.have)) == factors(the.lacks))
  }
}

@Suite struct `A text of secrets` {
  @Test func `is none where it is longer than its buffer`() {
    var text = SecretText(capacity: 3)
    text.add("abc")
    #expect(text.finish()?.count == 3)
    text.add("d")
    #expect(text.finish() == nil)
  }
}
