package import PAMStack
import SallyportAdministration
package import SallyportCore
package import SallyportSystem

/// Whom a service asks for a code, where its stack lets nobody around our line.
package enum AskedUsers: String, Sendable {
  case nobody
  /// Users without an enrollment are let in, by `nullok` or by the policy.
  case enrolled = "the enrolled"
  case everybody

  /// For users whom no rule of the policy names.
  package init(of stack: ServiceStack, of machine: Machine, _ store: Store, _ now: UnixTime) {
    let service = ServiceFacts(stack, of: machine)
    let policy = PolicyFacts(
      of: machine, in: store, service, people: [], enrolled: [], at: now)
    let isDenied = service.stack.contains { found in
      if case .ignoreIsDenied(.auth, _) = found { true } else { false }
    }
    if policy.isDisabled {
      self = .nobody
    } else {
      self = isDenied || policy.stranger.isRefusal ? .everybody : .enrolled
    }
  }
}

extension UnenrolledAction {
  /// Nobody gets in without an enrollment.
  fileprivate var isRefusal: Bool {
    switch self {
    case .refuse, .enroll(.required): true
    case .pass, .enroll(.refuse), .enroll(.offer), .enroll(.remind), .enroll(.voluntary): false
    }
  }
}
