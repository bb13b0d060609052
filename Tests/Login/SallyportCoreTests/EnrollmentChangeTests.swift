import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `Changes of an enrollment` {
  @Test
  func `an added authenticator stands behind the others, and takes nothing away`() throws {
    let one = try enrollment(["phone"])
    let changed = try EnrollmentChange.add([try authenticator("tablet", 2)], backupCodes: nil)
      .applied(to: one)
    #expect(changed.authenticators.map(\.name.text) == ["phone", "tablet"])
    #expect(changed.backupCodes?.id == one.backupCodes?.id)
    #expect(changed.id == one.id)
  }

  @Test
  func `a new set of backup codes takes the place of the old one`() throws {
    let fresh = BackupCodeSet(id: 77, salt: salt, digests: [])
    let one = try enrollment(["phone"])
    #expect(try EnrollmentChange.renew(fresh).applied(to: one).backupCodes?.id == 77)
    #expect(try EnrollmentChange.add([], backupCodes: fresh).applied(to: one).backupCodes?.id == 77)
  }

  @Test(arguments: [(nil, 32, 10), (0, 32, 10), (4, 32, 4), (32, 32, 32), (4, 10, 10), (4, 31, 31)])
  func `a set of the largest number keeps as many backup codes as there were`(
    before: Int?, new: Int, after: Int
  ) {
    func set(_ count: Int, _ id: UInt64) -> BackupCodeSet {
      BackupCodeSet(id: id, salt: salt, digests: (0..<count).map { [UInt8($0), 1] })
    }
    #expect(set(new, 77).replacing(before.map { set($0, 1) }) == set(after, 77))
  }

  @Test
  func `no two authenticators have one name`() throws {
    let two = try enrollment(["phone", "tablet"])
    let (phone, tablet) = (try label("phone"), try label("tablet"))
    #expect(throws: EnrollmentChange.Flaw.nameTaken(phone)) {
      try EnrollmentChange.add([try authenticator("phone", 9)], backupCodes: nil).applied(to: two)
    }
    #expect(throws: EnrollmentChange.Flaw.nameTaken(phone)) {
      try EnrollmentChange.rename(tablet, to: phone).applied(to: two)
    }
    let same = try EnrollmentChange.rename(phone, to: phone).applied(to: two)
    #expect(same.authenticators.map(\.name.text) == ["phone", "tablet"])
  }

  @Test
  func `no two authenticators have names that look alike`() throws {
    let two = try enrollment(["phone", "tablet"])
    let (phone, tablet) = (try label("phone"), try label("tablet"))
    for name in ["Phone", "ph0ne", "рhone"] {
      #expect(throws: EnrollmentChange.Flaw.nameTaken(phone)) {
        try EnrollmentChange.add([try authenticator(name, 9)], backupCodes: nil).applied(to: two)
      }
      #expect(throws: EnrollmentChange.Flaw.nameTaken(phone)) {
        try EnrollmentChange.rename(tablet, to: try label(name)).applied(to: two)
      }
      let own = try EnrollmentChange.rename(phone, to: try label(name)).applied(to: two)
      #expect(own.authenticators.map(\.name.text) == [name, "tablet"])
    }
  }

  @Test
  func `there is no ninth authenticator`() throws {
    let eight = try enrollment((1...8).map { "a\($0)" })
    #expect(throws: EnrollmentChange.Flaw.tooManyAuthenticators) {
      try EnrollmentChange.add([try authenticator("a9", 9)], backupCodes: nil).applied(to: eight)
    }
  }

  /// Each code would be accepted twice. 6 digits are the last ones of 8.
  @Test
  func `no two authenticators give the same codes`() throws {
    var one = try enrollment(["phone"])
    let (phone, first) = (try label("phone"), one.authenticators[0])
    func second(_ parameters: CodeParameters) throws -> Authenticator {
      Authenticator(
        id: 2, name: try label("tablet"), parameters: parameters, secret: first.secret,
        initialLastAccepted: nil, created: UnixTime(0))
    }
    let type = first.parameters.type
    let eight = try #require(CodeParameters(type: type, algorithm: .sha1, digits: .eight))
    let other = try #require(CodeParameters(type: type, algorithm: .sha256, digits: .six))
    for same in [first.parameters, eight] {
      let added = try second(same)
      #expect(throws: EnrollmentChange.Flaw.secretTaken(phone)) {
        try EnrollmentChange.add([added], backupCodes: nil).applied(to: one)
      }
      one.authenticators = [first, added]
      #expect(throws: EnrollmentChange.Flaw.secretTaken(phone)) { try one.checkSecrets() }
      one.authenticators = [first]
    }
    let added = try EnrollmentChange.add([try second(other)], backupCodes: nil).applied(to: one)
    #expect(added.authenticators.count == 2)
    try added.checkSecrets()
  }

  @Test
  func `the last authenticator stays, and one that is not there cannot be removed`() throws {
    let one = try enrollment(["phone"])
    let (phone, tablet) = (try label("phone"), try label("tablet"))
    #expect(throws: EnrollmentChange.Flaw.lastAuthenticator) {
      try EnrollmentChange.remove(phone).applied(to: one)
    }
    #expect(throws: EnrollmentChange.Flaw.noSuchAuthenticator(tablet)) {
      try EnrollmentChange.remove(tablet).applied(to: one)
    }
    let left = try EnrollmentChange.remove(phone).applied(to: try enrollment(["phone", "tablet"]))
    #expect(left.authenticators.map(\.name.text) == ["tablet"])
  }

  @Test
  func `nobody who is enrolled is enrolled over`() throws {
    let one = try enrollment(["phone"])
    #expect(throws: EnrollmentChange.Flaw.enrolled) {
      try EnrollmentChange.create(one).applied(to: one)
    }
  }

  @Test
  func `each change but another name forgets the remembered places`() throws {
    let two = try enrollment(["phone", "tablet"])
    var state = LoginState(initialFor: two)
    let address = NumericAddress(high: 0, low: 0xffff_c633_6401)
    state.remembered = [
      RememberedOrigin(origin: address, service: try label("sshd"), granted: UnixTime(5))
    ]
    let place = try #require(NetworkAddress([198, 51, 100, 1]))
    state.origins = [KnownOrigin(origin: place, lastSeen: UnixTime(5))]
    state.slip = Slip(authenticator: 1, position: 3, time: UnixTime(5), amount: .percent)
    let phone = try label("phone")
    let changes: [EnrollmentChange] = [
      .add([], backupCodes: nil), .remove(phone),
      .renew(BackupCodeSet(id: 77, salt: salt, digests: [])),
    ]
    for change in changes {
      let after = change.applied(to: state, of: try change.applied(to: two))
      #expect(after.remembered.isEmpty)
    }
    let removed = EnrollmentChange.remove(phone)
    let after = removed.applied(to: state, of: try removed.applied(to: two))
    #expect(after.slip == nil && after.origins.isEmpty)
    let renamed = EnrollmentChange.rename(phone, to: try label("old"))
    #expect(renamed.applied(to: state, of: try renamed.applied(to: two)) == state)
  }

  private let salt = [UInt8](repeating: 3, count: BackupCodeSet.saltLength)

  private func label(_ text: String) throws -> Label { try #require(Label(text.utf8)) }

  private func authenticator(_ name: String, _ id: UInt64) throws -> Authenticator {
    Authenticator(
      id: id, name: try label(name), parameters: .standard,
      secret: try #require(Secret(Array("1234567890123456789".utf8) + [UInt8(id)])),
      initialLastAccepted: nil,
      created: UnixTime(0))
  }

  private func enrollment(_ names: [String]) throws -> Enrollment {
    var all: [Authenticator] = []
    for name in names { all.append(try authenticator(name, UInt64(all.count) + 1)) }
    return Enrollment(
      id: 5, user: try #require(UserName("alice".utf8)), uid: 1000, created: UnixTime(0),
      authenticators: all, backupCodes: BackupCodeSet(id: 9, salt: salt, digests: []))
  }
}

extension EnrollmentChange {
  /// Of an enrollment of which nothing was used.
  fileprivate func applied(to enrollment: Enrollment) throws(Flaw) -> Enrollment {
    try applied(to: enrollment, LoginState(initialFor: enrollment))
  }
}
