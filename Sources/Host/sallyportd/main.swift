import CService
import Glibc
import SallyportService
import SallyportSupport
import SallyportSystem

#if FLEET
  import FleetHost

  /// This machine in its fleet, where it is in one.
  private func fleetSide() throws(ServiceError) -> (any FleetSide)? {
    try Relay(of: Membership()) { ServiceLog.write($0, $1) }
  }
#else
  /// Built without the fleet: the handler refuses logins that the policy sends there.
  private func fleetSide() throws(ServiceError) -> (any FleetSide)? { nil }
#endif

/// The service `sallyportd`.
struct Sallyportd {
  static let help = """
    usage: sallyportd [--sessions] [--session-program PATH]

    Check codes for programs that are not root, and for su and sudo.

      --sessions              Serve people who change their own enrollment, and nobody else.
      --session-program PATH  The program that is started for each of these.
      -h, --help              Show this.

    Started by the system. It takes its sockets from systemd, or opens them itself, and stays in the
    foreground until SIGTERM.

    """

  var sessions = false
  var sessionProgram = Sessions.program

  /// The exit status.
  static func run() -> Int32 {
    var service = Sallyportd()
    var program: UnsafePointer<CChar>?
    // SAFETY: main's own words, with their number; they stay.
    switch unsafe service_read_options(
      CommandLine.argc, CommandLine.unsafeArgv, &service.sessions, &program)
    {
    case 0:
      if let program = unsafe program { service.sessionProgram = unsafe String(cString: program) }
      return service.run()
    case 1:
      print(help, terminator: "")
      return 0
    case _: return EX_USAGE
    }
  }

  private func run() -> Int32 {
    ServiceLog.open(as: "sallyportd")
    do throws(ServiceError) {
      try serve()
      return 0
    } catch {
      ServiceLog.fatal(error.text, of: "sallyportd")
      return 1
    }
  }

  private func serve() throws(ServiceError) {
    try ServiceError.check(service_harden(4096), "setrlimit")
    try ServiceError.check(service_hold_signals(), "sigprocmask")
    if sessions { return try serveSessions() }
    let fleet = try fleetSide()
    let handler = RequestHandler(store: Store(), fleet: fleet) { ServiceLog.write($0, $1) }
    try handler.prepare()
    let shares = Shares()
    let (listeners, sessions) = try open(shares)
    let service = try Service.start(listeners, shares: shares) { handler.answer($0, $1, to: $2) }
    try sessions?.open()
    fleet?.start()
    ServiceLog.info("started")
    service_wait_for_end()
    sessions?.end()
    fleet?.stop()
    let isDone = service.stop()
    ServiceLog.info(isDone ? "stopped" : "stopped, with packets unanswered")
    // Not by way of libcrypto's own end, under threads that still use it.
    if !isDone { _exit(0) }
  }

  /// Where sockets are passed, sessions have a service of their own, which can do more to the
  /// machine, as their modules of PAM must, and less to the store.
  private func open(_ shares: Shares) throws(ServiceError) -> (Listeners, Sessions?) {
    if let passed = try Listeners.passed(
      root: Listeners.rootPath, everybody: Listeners.everybodysPath)
    {
      return (passed, nil)
    }
    let listeners = try Listeners.open(
      root: Listeners.rootPath, everybody: Listeners.everybodysPath)
    guard Sessions.canStart(sessionProgram) else { return (listeners, nil) }
    do throws(ServiceError) {
      let listener = try Listeners.open(forSessions: Sessions.path)
      return (listeners, Sessions(listener, sessionProgram, shares: shares))
    } catch {
      // Logins do without.
      ServiceLog.error("no sessions: \(error.text)")
      return (listeners, nil)
    }
  }

  private func serveSessions() throws(ServiceError) {
    guard Sessions.canStart(sessionProgram) else { throw .noProgram(path: sessionProgram) }
    var listener = try Listeners.passed(forSessions: Sessions.path)
    if listener == nil { listener = try Listeners.open(forSessions: Sessions.path) }
    guard let listener else { return }
    let sessions = Sessions(listener, sessionProgram)
    try sessions.open()
    ServiceLog.info("started, for sessions")
    service_wait_for_end()
    sessions.end()
    ServiceLog.info("stopped")
  }
}

exit(Sallyportd.run())
