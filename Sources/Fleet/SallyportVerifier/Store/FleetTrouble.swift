import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

// What is thrown and told where a question cannot be answered.
extension FleetStore {
  func hash(of name: [UInt8]) throws(StoreTrouble) -> UInt64 {
    try rethrow(
      { () throws(CryptoError) in number(try SHA256.digest(name)) }, as: StoreTrouble.crypto)
  }

  func ask<R>(_ body: () throws(DatabaseFault) -> R) throws(StoreTrouble) -> R {
    do throws(DatabaseFault) { return try body() } catch { throw fault(error) }
  }

  func sealing<R>(_ body: () throws(RowFault) -> R) throws(StoreTrouble) -> R {
    do throws(RowFault) { return try body() } catch { throw fault(error.text) }
  }

  /// Logs it, and gives what the handler answers.
  func fault(_ text: StaticString) -> StoreTrouble {
    alert(text)
    return .service(path: "fleet", .trouble(mayBeTheCallers: false))
  }

  func fault(_ fault: DatabaseFault) -> StoreTrouble {
    loaded.unanswered.withLock { $0 = fault.text }
    switch fault {
    case .away, .aside, .unreachable: loaded.isAway.withLock { $0 = true }
    case .refused where fault.isOfTheServer: loaded.isAway.withLock { $0 = true }
    case .refused, .broken, .silent, .warned, .moved, .unusable, .outOfMemory: break
    }
    guard voice == .usual else { return .service(path: "fleet", .trouble(mayBeTheCallers: false)) }
    var line = LogLine("refused: database error:")
    line.add(user: event.name)
    line.add(": ")
    line.add(escaped(Array(fault.text.utf8), limit: 400))
    database.note(.error, line)
    return .service(path: "fleet", .trouble(mayBeTheCallers: false))
  }

  func alert(_ text: StaticString) {
    if voice == .silent { return }
    var line = LogLine("ALERT:")
    line.add(user: event.name)
    line.add(": ")
    line.add(text)
    database.note(.alert, line)
  }
}
