package import SallyportCore
package import SallyportDoctor
import SallyportSystem

/// All accounts that the machine lists, each name once, and whether it may have others.
package func accountNames(on machine: Machine) throws(CommandError)
  -> (names: [UserName], mayLackPeople: Bool)
{
  let accounts = try storing { () throws(StoreTrouble) in try AccountBook.all() }
  var seen: Set<[UInt8]> = []
  let names = accounts.map(\.account.name).filter { seen.insert($0.bytes).inserted }
  return (names, AccountBook.mayLackPeople(accounts, on: machine))
}
