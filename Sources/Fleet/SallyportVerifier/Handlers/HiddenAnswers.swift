import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 host, $2 name: whether another verifier has let him in there just now.
  fileprivate static let hasLoggedIn = """
    SELECT count(*) FROM event WHERE at > now() - interval '20 seconds' AND host = $1
      AND name = $2::bytea AND outcome = 'accepted'
    """
}

// A host without rights that has asked about more people than log in there is told the same of
// everybody: that he is enrolled, and if a code is refused, that he is not. It learns no more of
// who is, and a right code is taken as ever: of that it is told.
extension LoginHandler {
  /// Whether the host must not learn who this is.
  func isHidden(_ question: LoginQuestion, from asker: HostIdentity, by store: FleetStore)
    throws(StoreTrouble) -> Bool
  {
    guard asker.rights.isEmpty, people.isHidden(question.name, from: asker.pin) else {
      return false
    }
    // By another verifier.
    let values = [Value.text(asker.host), .bytes(question.name)]
    let (rows, _) = try store.ask { () throws(DatabaseFault) in
      try database.ask(Statement.hasLoggedIn, values)
    }
    if rows.number(0, 0) ?? 0 > 0 {
      people.know(question.name, on: asker.pin)
      return false
    }
    database.meters.noteHidden()
    return true
  }

  /// What it learns by an answer.
  func note(_ answer: ServiceAnswer?, to question: LoginQuestion, from asker: HostIdentity) {
    // Who may see people and their secrets learns nothing by asking for them.
    guard answer?.showsEnrolled(to: question.verb) == true,
      asker.rights[.changes] == HostRights.Allowance(),
      asker.rights[.takes] == HostRights.Allowance(),
      people.note(question.name, from: asker.pin)
    else { return }
    let host = String(decoding: asker.host, as: UTF8.self)
    database.alert(
      "host \(host) has asked about more than \(AskedPeople.usual) enrolled people who did not log "
        + "in there"
        + (asker.rights.isEmpty
          ? ": from now on it gets the same answer about everybody, and right codes are accepted"
          : "")
        + "; if it was taken over: sallyport-verifier revoke \(host)")
  }

  /// What nobody is let in by, or kept out.
  func hidden(
    _ answer: ServiceAnswer, to question: LoginQuestion, in context: LoginContext,
    by store: FleetStore
  ) throws(StoreTrouble) -> ServiceAnswer {
    guard let account = question.account else { return answer }
    switch answer {
    case .prompt(_, let shape):
      // At an address of a login that was here.
      if shape.isRemembered { return answer }
      return .prompt(.enrolled, try shape.hidden(as: number(for: account.name)))
    case .outcome(.refused):
      return .outcome(.refused(account.uid == nil ? .unknownUser : .notEnrolled))
    case .notEnrolled:
      switch try question.authority(over: store).level(of: account, in: context) {
      // He is asked for a code, and none is right.
      case .refuse, .required:
        return .prompt(.enrolled, try Shape.unknown.hidden(as: number(for: account.name)))
      case .offer, .remind, .voluntary: return answer
      }
    case .told, .skip, .enroll, .outcome, .level, .count, .done, .changed, .flaw, .trouble,
      .notServed:
      return answer
    }
  }

  /// The same for a name each time, and never 0.
  private func number(for name: UserName) throws(StoreTrouble) -> UInt64 {
    let derived = try rethrow(
      { () throws(CryptoError) in try database.key.bind("hidden", [name.bytes]) },
      as: StoreTrouble.crypto)
    return SallyportVerifier.number(derived.suffix(8)) | 1
  }
}

extension ServiceAnswer {
  /// Whether it shows that somebody is enrolled.
  fileprivate func showsEnrolled(to verb: LoginQuestion.Verb) -> Bool {
    switch self {
    case .prompt(.enrolled, _), .told, .outcome(.refused(.response)), .outcome(.refused(.blocked)):
      return true
    case .done:
      guard case .remember = verb else { return false }
      return true
    case .prompt, .outcome, .skip, .enroll, .notEnrolled, .level, .count, .changed, .flaw,
      .trouble, .notServed:
      return false
    }
  }
}

extension Shape {
  /// As of somebody who has an app.
  fileprivate static let unknown = Shape(
    enrollmentID: 1, authenticators: [], hasScratchCodes: false, backupCodesLeft: nil, wait: 0,
    isRemembered: false)

  /// Of all that is enrolled only how long codes are, where they have not six digits: what is typed
  /// is read by it.
  fileprivate func hidden(as id: UInt64) -> Shape {
    var digits = Set(authenticators.map(\.digits))
    if hasScratchCodes { digits.insert(.eight) }
    if digits.isEmpty { digits.insert(.six) }
    let name = Label(bytes(of: "code"))
    return Shape(
      enrollmentID: id,
      authenticators: digits.sorted { $0.rawValue < $1.rawValue }.compactMap { digits in
        name.map { Authenticator(name: $0, kind: .totp, digits: digits) }
      }, hasScratchCodes: false, backupCodesLeft: nil, wait: 0, isRemembered: false)
  }
}
