import CPostgres

/// Why a question to the database has no valid answer.
package enum DatabaseFault: Error, Equatable {
  /// There is no connection to it.
  case unreachable(String)
  /// The server refused, with this SQLSTATE; nothing was done.
  case refused(String, String)
  /// The connection is gone. It is unknown whether the statement was done.
  case broken(String)
  /// No answer in time. It is unknown whether the statement was done.
  case silent
  /// The statement was done with a warning: it may be lost.
  case warned
  /// Not asked: the result of a save, or the identity of the server, is unknown.
  case away
  /// Not asked: this verifier's clock is off.
  case aside
  /// Nothing was saved: what was loaded came over an earlier generation of connections.
  case moved
  /// The database answers, but is not what this program needs.
  case unusable(String)
  case outOfMemory
}

extension DatabaseFault {
  /// Whether the statement may have been done.
  var isUnknown: Bool {
    switch self {
    case .broken, .silent, .warned: true
    case .unreachable, .refused, .away, .aside, .moved, .unusable, .outOfMemory: false
    }
  }

  /// Whether the server can now do no statement of this kind for anybody, and has done nothing: its
  /// disk is full or fails, its memory or connections are used up (classes 53 and 58), it is too
  /// slow for what a statement may take (57014), it only reads (25006), or a migrate was
  /// interrupted long ago.
  var isOfTheServer: Bool {
    guard case .refused(let state, _) = self else { return false }
    return state.hasPrefix("53") || state.hasPrefix("58") || ["57014", "25006"].contains(state)
      || isRefused(by: "event_bound")
  }

  /// Whether the server has done nothing since a constraint with this name forbids it.
  func isRefused(by constraint: String) -> Bool {
    guard case .refused("23514", let reason) = self else { return false }
    // What somebody has typed comes in later lines.
    return reason.prefix { !$0.isNewline }.contains(constraint)
  }

  /// For the log and for people.
  package var text: String {
    switch self {
    case .unreachable(let reason), .broken(let reason): Self.connection(reason)
    case .refused(let state, let reason): "\(Self.connection(reason)) (SQLSTATE \(state))"
    case .silent:
      "no answer within \(Database.patience / 1000) s; the statement may still be done later "
        + "(is a synchronous standby away?)"
    case .warned: "done with a warning, so it may be lost; see the log of PostgreSQL"
    case .away: "the database is away, or is being verified"
    case .aside: "this verifier's clock is off: logins are refused"
    case .moved: "the connection was replaced"
    case .unusable(let reason): Self.connection(reason)
    case .outOfMemory: "out of memory"
    }
  }

  private static func connection(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}

/// A value of a statement.
package enum Value: Sendable {
  case bytes([UInt8])
  /// ASCII.
  case text([UInt8])
  case number(UInt64)
  case null
}

/// One connection, for one thread at a time.
@safe final class DatabaseConnection: @unchecked Sendable {
  private let connection: UnsafeMutablePointer<pg_line>
  /// Of the row of table `worker` that its saves raise.
  let worker: Int
  /// Which server this is, since when: its system identifier, its timeline, and when it was
  /// started. Two that were promoted one after the other may have the same timeline.
  private(set) var server: [UInt8] = []
  /// The statement at n is prepared under the name n.
  private let prepared: [String]

  /// `database`: as libpq has it (PostgreSQL's manual, "Connection Strings"). `preparing`: the
  /// statements that are asked so often that the server is to parse and plan them only once.
  init(_ database: String, worker: Int, preparing: [String] = []) throws(DatabaseFault) {
    // SAFETY: the C string lives for the call; the connection is closed in deinit, where this
    // throws too. What libpq says of a fault is copied at once; so for all below.
    guard let connection = unsafe pg_open(database) else { throw .outOfMemory }
    unsafe self.connection = connection
    self.worker = worker
    prepared = preparing
    guard unsafe pg_is_open(connection) == 1 else {
      throw .unreachable(unsafe String(cString: pg_fault(connection)))
    }
    guard let server = try ask(Statement.greeting).bytes(0, 0) else {
      throw .unusable("the server does not identify itself")
    }
    self.server = server
    for (name, statement) in preparing.enumerated() { try prepare(String(name), statement) }
  }

  private func prepare(_ name: String, _ statement: String) throws(DatabaseFault) {
    var result: OpaquePointer?
    // SAFETY: the C strings live for the call; the result is freed with the rows.
    let done = unsafe pg_prepare(connection, name, statement, Database.patience, &result)
    _ = try unsafe rows(done, result)
  }

  /// When the first certificate of the connection expires, in seconds since 1970; nil without one.
  var certificatesEnd: Int64? {
    // SAFETY: open as long as this object is.
    let end = unsafe pg_certificates_end(connection)
    return end == Int64.max ? nil : end
  }

  deinit {
    // SAFETY: made in init, owned by this object alone.
    unsafe pg_close(connection)
  }

  /// Asks one statement, and waits this many milliseconds. After any error but `refused` the
  /// connection must not be used again.
  func ask(
    _ statement: String, _ values: [Value] = [], _ patience: Int32 = Database.patience
  ) throws(DatabaseFault) -> Rows {
    let packed = Packed(values)
    var result: OpaquePointer?
    // SAFETY: the buffers live for the call; the result is freed with the rows.
    let done = unsafe pg_ask(
      connection, prepared.firstIndex(of: statement).map(String.init), statement,
      Int32(values.count),
      packed.bytes, packed.offsets, packed.lengths, packed.formats, patience, &result)
    return try unsafe rows(done, result)
  }

  /// Waits once more for the answer to a silent statement.
  func wait(_ patience: Int32) throws(DatabaseFault) -> Rows {
    var result: OpaquePointer?
    // SAFETY: as above.
    let done = unsafe pg_collect(connection, patience, &result)
    return try unsafe rows(done, result)
  }

  @unsafe private func rows(_ done: Int32, _ result: OpaquePointer?) throws(DatabaseFault) -> Rows {
    let rows = unsafe result.map { unsafe Rows($0) }
    switch Int(done) {
    case pg_rows: if let rows { return rows }
    case pg_refused:
      if let rows { throw .refused(rows.state, unsafe String(cString: pg_fault(connection))) }
    case pg_silent: throw .silent
    case pg_warned: throw .warned
    case pg_no_memory: throw .outOfMemory
    case _: break
    }
    throw .broken(unsafe String(cString: pg_fault(connection)))
  }
}

/// Values as libpq takes them.
private struct Packed {
  var bytes: [CChar] = []
  var offsets: [Int32] = []
  var lengths: [Int32] = []
  var formats: [Int32] = []

  init(_ values: [Value]) {
    for value in values {
      switch value {
      case .bytes(let value): add(value, format: 1)
      case .text(let value): add(value, format: 0)
      case .number(let value): add(Array(String(value).utf8), format: 0)
      case .null:
        offsets.append(-1)
        lengths.append(0)
        formats.append(0)
      }
    }
  }

  private mutating func add(_ value: [UInt8], format: Int32) {
    offsets.append(Int32(bytes.count))
    lengths.append(Int32(value.count))
    formats.append(format)
    bytes += value.map { CChar(bitPattern: $0) }
    bytes.append(0)
  }
}

/// The result of a statement, in binary.
@safe final class Rows {
  private let result: OpaquePointer

  /// Takes the result over.
  @unsafe fileprivate init(_ result: OpaquePointer) { unsafe self.result = result }

  deinit {
    // SAFETY: owned by this object alone.
    unsafe PQclear(result)
  }

  // SAFETY: the result lives as long as this object, and texts are copied; so for all below.
  var count: Int { unsafe Int(PQntuples(result)) }

  fileprivate var state: String { unsafe String(cString: pg_state(result)) }

  /// nil for NULL, and where there is no such value.
  func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
    let (row, column) = (Int32(row), Int32(column))
    // SAFETY: libpq says how many bytes there are, which are copied.
    guard unsafe row < PQntuples(result), unsafe column < PQnfields(result),
      unsafe PQgetisnull(result, row, column) == 0,
      let value = unsafe PQgetvalue(result, row, column)
    else { return nil }
    let count = unsafe Int(PQgetlength(result, row, column))
    return unsafe [UInt8](UnsafeRawBufferPointer(start: value, count: count))
  }

  func text(_ row: Int, _ column: Int) -> String? {
    bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
  }

  /// An int that is not negative.
  func int(_ row: Int, _ column: Int) -> Int? {
    guard let bytes = bytes(row, column), bytes.count == 4, bytes[0] < 0x80 else { return nil }
    return bytes.reduce(0) { $0 << 8 | Int($1) }
  }

  /// A bigint that is not negative.
  func number(_ row: Int, _ column: Int) -> UInt64? {
    signed(row, column).flatMap { UInt64(exactly: $0) }
  }

  /// A bigint.
  func signed(_ row: Int, _ column: Int) -> Int64? {
    guard let bytes = bytes(row, column), bytes.count == 8 else { return nil }
    return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}
