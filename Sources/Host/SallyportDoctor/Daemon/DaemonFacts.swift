import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// What there is of sallyportd, which checks codes for programs that are not root, and for su and
/// sudo.
struct DaemonFacts: Equatable {
  /// Where its sockets are.
  static let directory = "/run/sallyport"
  /// The PAM service of sallyport-session.
  static let service = "sallyport"

  var directory: Probe<FileFacts> = .absent
  /// For root's programs.
  var root = SocketFacts(ServiceAuthority.rootSocket, mode: 0o600)
  /// For programs that are not root.
  var anyUsers = SocketFacts(ServiceAuthority.publicSocket, mode: 0o666)
  /// For people who change their own enrollment, by sallyport-session.
  var session = SocketFacts("/run/sallyport/session", mode: 0o666)
  /// Whether the policy says `self_service = yes`, if only for somebody.
  var isSelfService = false
  /// Whether it has a helpdesk, and whom that may help.
  var hasHelpdesk = false
  var isAnybodyHelped = false
  /// What keeps it from being known who can become root, so that the helpdesk helps nobody.
  var rootGaps: [String] = []
  /// Whether there is a stack for what sallyport-session asks before the code.
  var hasStack = false
  /// Whether the policy says `verification = fleet`, if only for somebody.
  var isFleet = false
  /// Whether this sallyport is built with the fleet.
  var isBuiltWithFleet = true
  /// What `sallyport fleet join` makes: which fleet this machine belongs to, and its key.
  var fleetFile: Probe<FileFacts> = .absent
  var fleetKey: Probe<FileFacts> = .absent
  /// What is known of the fleet; nil where this machine is in none, or it was not asked.
  var fleet: FleetFacts?
  /// What starts it here; nil if it is not installed.
  var starter: Starter?

  enum Starter: Equatable { case systemd, initScript }
}

/// One socket of it.
struct SocketFacts: Equatable {
  let path: String
  /// The permission bits that it should have.
  let mode: UInt32
  var file: Probe<FileFacts> = .absent
  var answer = Answer.nobody

  /// What a question comes to.
  enum Answer: Equatable {
    /// Nobody listens, or was asked.
    case nobody
    case right
    /// Something of this uid listens.
    case foreign(UInt32)
    /// It does not understand the question, or its answer is not understood.
    case otherVersion
    /// None within a second.
    case late
    /// It could not be asked, for this reason.
    case unasked(String)
  }

  init(_ path: String, mode: UInt32) { (self.path, self.mode) = (path, mode) }

  /// Whether nobody is there to be asked, for certain.
  var isAbsent: Bool {
    switch file {
    case .absent: true
    case .unseen: false
    case .seen(let file): file.isSocket && answer == .nobody
    }
  }
}

extension DaemonFacts {
  init(of machine: Machine) {
    directory = machine.file(DaemonFacts.directory, following: false)
    root.look(at: machine)
    anyUsers.look(at: machine)
    isSelfService = PolicyText.allowsSelfService(on: machine)
    let helpdesk = PolicyText.helpdesk(on: machine)
    (hasHelpdesk, isAnybodyHelped) = (helpdesk.group != nil, helpdesk.helped != nil)
    if hasHelpdesk { rootGaps = RootNames(of: machine.ruleFiles).gaps }
    if isSelfService || hasHelpdesk { session.look(at: machine, asking: SocketFacts.listener) }
    isFleet = PolicyText.namesFleet(on: machine)
    fleetFile = machine.file(FleetFindings.file)
    fleetKey = machine.file(FleetFindings.key)
    hasStack = ["/etc", "/usr/lib"].contains {
      machine.file("\($0)/pam.d/\(DaemonFacts.service)").value != nil
    }
    let units = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"].map { "\($0)/systemd/system" }
    if machine.file("/run/systemd/system").value != nil,
      units.contains(where: { machine.file("\($0)/sallyport.socket").value != nil })
    {
      starter = .systemd
    } else if machine.file("/etc/init.d/sallyport").value != nil {
      starter = .initScript
    }
  }
}

extension Machine {
  /// As a session reads them.
  fileprivate var ruleFiles: RuleFiles {
    RuleFiles(
      text: { path in
        switch text(path) {
        case .absent: .absent
        case .seen(let text): .seen(text)
        case .unseen(let reason): .unseen(reason)
        }
      },
      names: { directory in
        if case .unseen = file(directory) { return nil }
        return paths("\(directory)/*").compactMap { $0.split(separator: "/").last.map(String.init) }
      })
  }
}

extension SocketFacts {
  fileprivate mutating func look(
    at machine: Machine, asking ask: (_ path: String) -> Answer = SocketFacts.answer
  ) {
    file = machine.file(path, following: false)
    if file.value?.isSocket == true { answer = ask(machine.root + path) }
  }

  /// Only whether somebody listens: for a question a session would be begun.
  fileprivate static func listener(at path: String) -> Answer {
    ServiceSocket.isThere(path) ? .right : .nobody
  }

  /// Asks for root's level, which changes nothing; for at most a second.
  private static func answer(at path: String) -> Answer {
    let verb = LoginQuestion.Verb.level
    let request = LoginQuestion(
      name: Array("root".utf8), service: Array("doctor".utf8), origin: .unknown, policy: Policy(),
      millisecondsLeft: UInt32(timeout), verb: verb)
    guard let frame = request.encoded() else { return .unasked("out of memory") }
    let start = Clock.monotonicMilliseconds()
    do throws(StoreTrouble) {
      guard let bytes = try ServiceSocket(to: path, timeLeft: timeout).ask(frame) else {
        return answer(.silent, after: Clock.monotonicMilliseconds() - start)
      }
      return ServiceAnswer.decode(bytes, to: verb) == nil ? .otherVersion : .right
    } catch {
      guard case .service(_, let fault) = error else {
        return .unasked(Message(error, at: Invocation(verb: "doctor")).text)
      }
      return answer(fault, after: Clock.monotonicMilliseconds() - start)
    }
  }

  private static let timeout: UInt64 = 1000

  /// One that closes the connection at once has not understood the question.
  private static func answer(_ fault: StoreTrouble.ServiceFault, after time: UInt64) -> Answer {
    switch fault {
    case .absent, .notASocket: .nobody
    case .notRoot(let user): .foreign(user)
    case .silent: time < timeout ? .otherVersion : .late
    case .busy, .unknown: .late
    case .garbage: .otherVersion
    case .notServed, .trouble: .right
    }
  }
}
