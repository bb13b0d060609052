package import SallyportCore
import SallyportSupport
import SallyportSystem

/// What a new enrollment would replace.
package enum ExistingEnrollment {
  case none
  case enrolled(authenticators: Int, newest: UnixTime)
  /// An enrollment that cannot be read; only with `--force`.
  case broken

  /// Throws `enrolledAlready`, or why the enrollment cannot be read, without `force`.
  init(of account: Account, in store: Store, force: Bool) throws(CommandError) {
    do throws(StoreTrouble) {
      guard let record = try store.load(account) else {
        self = .none
        return
      }
      let enrollment = record.enrollment
      self = .enrolled(
        authenticators: enrollment.authenticators.count, newest: enrollment.newest)
    } catch {
      self = try ExistingEnrollment(trouble: error, force: force)
    }
    if case .enrolled(let count, _) = self, !force { throw .enrolledAlready(authenticators: count) }
  }

  private init(trouble: StoreTrouble, force: Bool) throws(CommandError) {
    if case .noStore = trouble {
      self = .none
      return
    }
    guard force, trouble.isBrokenEnrollment else { throw .store(trouble) }
    self = .broken
  }

  var isThere: Bool { if case .none = self { false } else { true } }

  /// The question to ask before it is replaced; nil if there is nothing to replace.
  func question(_ user: String) -> String? {
    let user = printable(user.utf8, limit: 255)
    switch self {
    case .none: return nil
    case .enrolled(let count, _):
      return "Replace the enrollment of \(user) (\(counted(count, "authenticator")))?"
    case .broken: return "Replace the broken enrollment of \(user)?"
    }
  }

  /// When its last authenticator was made, as far as that can be told; nil if there is none.
  var newest: UnixTime? {
    switch self {
    case .none: nil
    case .enrolled(_, let newest): newest
    case .broken: UnixTime(0)
    }
  }
}

extension Enrollment {
  /// When its last authenticator was made.
  var newest: UnixTime { UnixTime(authenticators.map(\.created.seconds).max() ?? 0) }
}
