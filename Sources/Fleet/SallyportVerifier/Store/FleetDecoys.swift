import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
package import SallyportSystem

// Whom a login is verified by that is refused whatever was typed.
extension FleetStore {
  /// Names that nobody can have.
  private static let keys = (0..<64).map { Array("/\($0)".utf8) }

  static func isDecoy(_ key: [UInt8]) -> Bool { key.first == UInt8(ascii: "/") }

  func key(of record: Record) throws(StoreTrouble) -> [UInt8] {
    guard let name = record.decoyOf else { return record.enrollment.user.bytes }
    return try decoy(of: name)
  }

  func decoy(of name: [UInt8]) throws(StoreTrouble) -> [UInt8] {
    Self.keys[Int(try hash(of: name) % UInt64(Self.keys.count))]
  }

  /// Makes those that are missing.
  package func makeDecoys() throws(StoreTrouble) {
    for key in Self.keys {
      if try row(of: key) != nil { continue }
      let enrollment = try Store.makeDecoy()
      _ = try saveBoth(
        FleetDocument(.enrolled(enrollment)), LoginState(initialFor: enrollment), of: key,
        over: nil)
    }
  }
}
