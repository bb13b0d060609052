import SallyportCore
package import SallyportSystem

// Which tokens people have who move to a fleet, or whose fleet this machine leaves.

extension Store {
  /// Those that somebody has and that can be read.
  package func heldTokens() throws(StoreTrouble) -> [Token] {
    var held: [Token] = []
    try eachToken { _, read in
      if case .success(let token) = read, token.holder != nil { held.append(token) }
    }
    return held
  }

  /// Keeps what verifies the codes of the holder from now on, of those that nobody else got
  /// meanwhile; nil: that is not known any more.
  package func note(_ authority: Token.Authority?, for tokens: [Token]) throws(StoreTrouble) {
    for token in tokens where token.holder?.authority != authority {
      let done = try holdingTokens { () -> Result<Void, StoreTrouble> in
        do throws(StoreTrouble) {
          guard var now = try self.token(token.serial), now.holder == token.holder else {
            return .success(())
          }
          now.holder?.authority = authority
          return .success(try replace(now))
        } catch {
          return .failure(error)
        }
      }
      try done?.get()
    }
  }
}
