import OneTimePassword
package import SallyportCore

/// What is known of the people of the fleet.
enum FleetKnowledge {
  case unasked
  /// Of everybody who was asked about, by login name.
  case told([String: FleetRoster.Person])
  case unknown(AccessGap, String?)

  /// What becomes of a login that hangs on it.
  var doubt: Decided {
    if case .unknown(let gap, let reason) = self { return Decided(.unseen(gap), at: nil, reason) }
    return Decided(.unseen(.fleetSilent))
  }
}

extension AccessFacts {
  /// Asks about everybody who has an account here, if some login is verified by the fleet, and only
  /// once. nil: this command is built without the fleet.
  package mutating func ask(_ roster: (([UserName]) -> FleetRoster)?) {
    guard case .unasked = fleet else { return }
    guard AccessWays(self).forecaster.mayMeetFleet else { return }
    guard let roster else {
      fleet = .unknown(.fleetSilent, "this command is built without the fleet")
      return
    }
    switch roster(accounts.accounts.compactMap { UserName(Array($0.name.utf8)) }) {
    case .told(let people):
      fleet = .told(
        Dictionary(people.map { ($0.name.text, $0) }, uniquingKeysWith: { first, _ in first }))
    case .silent(let why): fleet = .unknown(.fleetSilent, why)
    case .keeps: fleet = .unknown(.fleetKeeps, nil)
    }
  }

  /// What the fleet has told of this account.
  func inFleet(_ account: AccountFacts.Account) -> FleetRoster.Person? {
    guard case .told(let people) = fleet else { return nil }
    return people[account.name]
  }

  /// Whether something is kept of the account, here or in the fleet.
  func isKnown(_ account: AccountFacts.Account) -> Bool {
    if enrollments[account.name] != nil || notes[account.name] != nil { return true }
    return inFleet(account).map { $0.place != .notEnrolled || $0.level != nil } ?? false
  }

  /// Whether the account is enrolled, here or in the fleet.
  func isEnrolled(_ account: AccountFacts.Account) -> Bool {
    if case .enrolled = inFleet(account)?.place { return true }
    return enrollments[account.name] != nil
  }
}

/// What the fleet may have of one person.
struct FleetState {
  let enrollment: KnownEnrollment
  let level: UserNote.Level?

  /// As long as nothing is known of him, the states that may make a difference.
  static let all = [
    FleetState(enrollment: .none, level: nil),
    FleetState(enrollment: .none, level: .exempt(until: nil)),
    FleetState(enrollment: .none, level: .required(from: nil)),
    FleetState(enrollment: .enrolled([.totp]), level: nil),
  ]
  static let none = all[0]
}

extension FleetState {
  init(_ person: FleetRoster.Person) {
    level = person.level
    switch person.place {
    case .enrolled(let factors):
      enrollment = .enrolled(Set(FactorKind.allCases.filter { factors.contains($0) }))
    case .notEnrolled: enrollment = .none
    case .taken, .unreadable: enrollment = .broken
    }
  }
}
