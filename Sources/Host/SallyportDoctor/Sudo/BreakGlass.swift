/// Who could log in to this machine and become root by its own files alone.
package enum BreakGlass {
  /// The names of accounts that can log in and become root, of the machine's own files, root first.
  package static func candidates(on machine: Machine) -> [String] {
    let (accounts, sudoers) = (AccountFacts(of: machine), Sudoers(of: machine))
    let roots = accounts.people.filter { $0.uid == 0 }
    let others = accounts.people.filter {
      $0.uid != 0 && sudoers.isThere && accounts.mayCall($0, sudoers)
    }
    return (roots + others).map(\.name)
  }
}
