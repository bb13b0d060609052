import PAMStack
import SallyportDoctor

/// Who gets in, in JSON.
struct AccessFactsJSON: Encodable {
  private struct WayFacts: Encodable {
    let service, name: String
    @OrNull var from: String?
    let root: Bool
  }

  private struct CellFacts: Encodable {
    /// The position in `ways`.
    let way: Int
    let verdict, reason: String
    let methods: [String]
    @OrNull var file: String?
    @OrNull var line: Int?
    @OrNull var detail: String?
    /// The line that says that it is meant so.
    @OrNull var onPurpose: String?
  }

  private struct AccountFacts: Encodable {
    let user: String
    let uid: UInt32
    let enrolled: Bool
    let cells: [CellFacts]
  }

  private let ways: [WayFacts]
  private let accounts: [AccountFacts]
  private let unlisted: [String]

  init(_ table: AccessTable) {
    var numbers: [AccessWay: Int] = [:]
    for way in table.rows.flatMap(\.cells).map(\.way) where numbers[way] == nil {
      numbers[way] = numbers.count
    }
    ways = numbers.sorted { $0.value < $1.value }.map { way, _ in
      WayFacts(service: way.service, name: way.name, from: way.origin, root: way.givesRoot)
    }
    accounts = table.rows.map { row in
      AccountFacts(
        user: row.user, uid: row.uid, enrolled: row.isEnrolled,
        cells: row.cells.map { cell in
          CellFacts(
            way: numbers[cell.way] ?? 0, verdict: cell.verdict.name, reason: cell.verdict.reason,
            methods: cell.methods, file: cell.location?.file, line: cell.location?.line,
            detail: cell.detail, onPurpose: cell.purpose?.text)
        })
    }
    unlisted = table.gaps
  }
}
