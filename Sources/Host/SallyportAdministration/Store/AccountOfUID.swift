import CService
package import SallyportCore
package import SallyportSystem

extension Accounts {
  /// The first account with this uid; nil where there is none, or its name is no user name.
  package static func find(uid: UInt32) throws(StoreTrouble) -> Account? {
    guard let bytes = try name(of: uid), let name = UserName(bytes) else { return nil }
    return try find(name)
  }

  /// The name of the first account with this uid, by getpwuid_r(3), at most 255 bytes; nil where
  /// there is none.
  package static func name(of uid: UInt32) throws(StoreTrouble) -> [UInt8]? {
    var name = [UInt8](repeating: 0, count: 256)
    // SAFETY: the buffer has its size.
    let result = unsafe name.withUnsafeMutableBytes { buffer -> Int32 in
      guard let base = unsafe buffer.bindMemory(to: CChar.self).baseAddress else { return 0 }
      return unsafe service_account(uid, base, buffer.count)
    }
    if result < 0 { throw .system("getpwuid", path: "", errno: -result) }
    return result == 1 ? Array(name.prefix { $0 != 0 }) : nil
  }
}
