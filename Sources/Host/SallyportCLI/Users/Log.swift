import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Everybody: for verbs that only read.
enum Everybody: UnnamedUser {
  static let isCaller = false
  static let asks = false
  static let help = ArgumentHelp("The user. (default: everybody)", valueName: "user")
}

/// `sallyport log`
struct Log: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show who changed what for which user, and who logged in.",
    discussion: """
      Acts: each change by which somebody logs in otherwise than before, or is asked otherwise, \
      from the store. Logins: from the journal, and there only what root's programs wrote, and \
      on a host that may enroll people of a fleet from its verifiers.
      """)

  @OptionGroup var argument: UserArgument<Everybody>

  @Flag(help: "The acts alone.")
  var acts = false

  @Flag(help: "The logins alone.")
  var logins = false

  @Option(
    help: ArgumentHelp(
      "Since then: 7d, 12h, 30m or 4w ago, or a day, 2026-11-28. (default: 7d)", valueName: "time"),
    transform: Since.init(typed:))
  var since: Since?

  @OptionGroup var shared: StoreOptions

  func user(in context: Context) -> String? { argument.name }

  func validate() throws {
    if acts, logins { throw ValidationError("--acts and --logins exclude each other") }
  }

  private struct Answer: Encodable {
    let acts: [ToldAct.Facts]
    let logins: [ToldLogin.Facts]
    let warnings: [String]
  }

  func run(in context: Context) throws(CommandError) {
    let (store, now) = (try context.store(shared), try context.time())
    let start = (since ?? .usual).time(before: now)
    let names = try argument.name.map { name throws(CommandError) in try meant(name, context) }
    let fleet = try fleetLog(since: start, of: names, store, context)
    let kept = logins ? nil : try keptActs(store, start, names, isOptional: fleet != nil)
    // Of enrollments that a login made, the log alone tells, whatever is wanted of it.
    let logged = FoundLogins(on: context.machine, since: start, now: now, of: names)
    let (own, events) = acts ? ([], []) : fleet?.merged(with: logged.told) ?? (logged.told, [])
    let done =
      logins
      ? []
      : (kept?.acts ?? []).map { (-1, $0) } + logged.acts
        + (fleet?.acts ?? []).map { (Int.max, $0) }
    let missing = fleet?.trouble.map { "the fleet's part is missing: \($0)" }
    var warnings = (kept?.warnings ?? []) + logged.warnings
    if fleet?.isCut == true { warnings.append(FleetLog.cutText) }
    let output = context.output(shared)
    for text in warnings { output.warn(text) }
    let lines = inOrder(
      done.map { Line(time: $1.record.time, place: $0, text: $1.text, isRefusal: false) }
        + own.map {
          Line(time: $0.login.time, place: $0.place, text: $0.text, isRefusal: $0.isRefusal)
        }
        + events.reversed().map {
          Line(time: $0.time, place: Int.max, text: $0.text, isRefusal: $0.isRefusal)
        }, now)
    // Somebody whose account is gone may be in the log, and a name that was mistyped is not.
    let stranger = try argument.name.map { name throws(CommandError) in try context.account(name) }
      .flatMap { $0.uid == nil ? "; there is no account \($0.name.text)" : nil }
    let none =
      "Nothing since \(whenText(start, seenFrom: now)), as far as is recorded\(stranger ?? "")."
    output.answer(
      Answer(
        acts: inOrder(done.map(\.1)).map(\.facts),
        logins: inOrder(own.map { ($0.login.time, $0.facts) }, events),
        warnings: warnings + [missing].compactMap { $0 }),
      (lines.isEmpty ? [none] : lines).joined(separator: "\n"))
    if let missing { throw CommandError(.busy, missing, hints: ["sallyport fleet status"]) }
  }

  /// `isOptional`: without a store nothing was changed here, and the fleet has logins all the same.
  private func keptActs(
    _ store: Store, _ start: UnixTime, _ names: [UserName]?, isOptional: Bool
  ) throws(CommandError) -> FoundActs? {
    do throws(CommandError) { return try FoundActs(in: store, since: start, of: names) } catch {
      if isOptional, case .store(.noStore) = error.cause { return nil }
      throw error
    }
  }

  /// What the verifiers say, where this machine's policy leaves it to them to verify the user, or
  /// no user is named.
  private func fleetLog(
    since start: UnixTime, of names: [UserName]?, _ store: Store, _ context: Context
  ) throws(CommandError) -> FleetLog? {
    guard shared.store == nil, let fleet = context.fleet, fleet.isHost else { return nil }
    if let name = argument.name {
      let account = try context.account(name)
      guard context.policy(at: nil, for: account, in: store, warns: false).isFleet else {
        return nil
      }
    }
    return fleet.log(
      of: logins ? .logins : acts ? .acts : .both, since: start, of: names ?? [])
  }

  private func inOrder(
    _ own: [(time: UnixTime, facts: ToldLogin.Facts)], _ events: [FleetLog.Event]
  )
    -> [ToldLogin.Facts]
  {
    let all = own + events.reversed().map { ($0.time, $0.facts) }
    return all.enumerated().sorted {
      ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
    }.map(\.element.facts)
  }

  private func inOrder(_ acts: [ToldAct]) -> [ToldAct] {
    acts.enumerated().sorted {
      ($0.element.record.time, $0.offset) < ($1.element.record.time, $1.offset)
    }.map(\.element)
  }

  private struct Line {
    let time: UnixTime
    /// Of the same second: first what the file of acts has, then the lines of the log as they came.
    let place: Int
    let text: String
    let isRefusal: Bool
  }

  /// Refusals that follow each other and are the same are one line.
  private func inOrder(_ lines: [Line], _ now: UnixTime) -> [String] {
    let ordered = lines.enumerated().sorted {
      ($0.element.time, $0.element.place, $0.offset)
        < ($1.element.time, $1.element.place, $1.offset)
    }.map(\.element)
    var runs: [(first: Line, count: Int, last: UnixTime)] = []
    for line in ordered {
      if let run = runs.last, line.isRefusal, run.first.text == line.text {
        runs[runs.count - 1] = (run.first, run.count + 1, line.time)
      } else {
        runs.append((line, 1, line.time))
      }
    }
    return runs.map { run in
      let times =
        run.count == 1 ? "" : ", \(run.count) times, last \(whenText(run.last, seenFrom: now))"
      return "\(whenText(run.first.time, seenFrom: now))  \(run.first.text)\(times)"
    }
  }

  /// The name as typed, and the account's own.
  private func meant(_ name: String, _ context: Context) throws(CommandError) -> [UserName] {
    let account = try context.account(name)
    return [UserName(Array(name.utf8)), account.name].compactMap { $0 }
  }
}

/// Since when the log is shown.
struct Since {
  private enum Start {
    case ago(UInt64)
    case at(UnixTime)
  }
  private let start: Start

  static let usual = Since(start: .ago(7 * 86_400))

  private init(start: Start) { self.start = start }

  /// Throws unless it is a number with its unit, or a date.
  init(typed text: String) throws {
    let units: [Character: UInt64] = ["m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    if let day = UnixTime(date: Array(text.utf8)) {
      start = .at(day)
    } else if let unit = text.last.flatMap({ units[$0] }), let number = UInt64(text.dropLast()),
      (1...100_000).contains(number)
    {
      start = .ago(number * unit)
    } else {
      throw ValidationError("expected 7d, 12h, 30m or 4w, or a date such as 2026-11-28")
    }
  }

  func time(before now: UnixTime) -> UnixTime {
    switch start {
    case .ago(let seconds): UnixTime(now.seconds - Int64(seconds))
    case .at(let time): time
    }
  }
}
