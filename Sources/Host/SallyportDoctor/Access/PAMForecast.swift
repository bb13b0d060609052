import PAMStack
import SallyportCore

/// What was found out about one login: a cell without its way.
struct Decided: Hashable {
  var verdict: Verdict
  var location: FileLocation?
  var detail: String?
  /// Whose password and code are asked for; nil for the account itself.
  var whose: String?

  init(_ verdict: Verdict, at location: FileLocation? = nil, _ detail: String? = nil) {
    (self.verdict, self.location, self.detail) = (verdict, location, detail)
  }
}

/// One login, rehearsed by two people: the owner of the account, and a thief who has all of the
/// owner's but what gives the codes. Only if the owner gets in and the thief does not, a code is
/// asked for.
enum PAMForecast {
  /// `around`: why the program leaves out a phase.
  static func decided(
    thief: Rehearsal.End, owner: () -> Rehearsal.End, _ stack: ServiceStack,
    around: Decided? = nil
  ) -> Decided {
    switch thief {
    case .isIn(let handle):
      return handle.isPlain ? around ?? opened(handle, stack) : opened(handle, stack)
    case .open(let entry): return unseen(entry)
    case .isOut: break
    }
    switch owner() {
    case .isIn(let handle): return Decided(.asked(handle.asking ?? .code), at: handle.line)
    case .open(let entry): return unseen(entry)
    case .isOut(let handle):
      guard let (barrier, location, module) = handle.barrier else {
        return Decided(.refused(.stackShut), at: stack.file.map { FileLocation(file: $0) })
      }
      return Decided(.refused(barrier), at: location, barrier.isOurs ? nil : module)
    }
  }

  private static func unseen(_ entry: StackEntry?) -> Decided {
    guard let entry else { return Decided(.unseen(.tooComplex)) }
    return Decided(.unseen(.moduleDecides), at: entry.location, entry.module)
  }

  private static func opened(_ handle: RehearsedHandle, _ stack: ServiceStack) -> Decided {
    if handle.isEnrolling { return Decided(.withoutCode(.enrolls), at: handle.line) }
    if let opening = handle.opening { return Decided(.withoutCode(opening), at: handle.openedAt) }
    if handle.asking != nil { return Decided(.withoutCode(.uncounted), at: handle.line) }
    if let line = ModuleLines(of: stack).of(.auth).first {
      return Decided(.withoutCode(.skipped), at: line.location)
    }
    let isOther = stack.file == nil || stack.isOther(.auth)
    let file = FileLocation(file: isOther ? "/etc/pam.d/other" : stack.file ?? "")
    return Decided(.withoutCode(isOther ? .otherFile : .noLine), at: file)
  }
}
