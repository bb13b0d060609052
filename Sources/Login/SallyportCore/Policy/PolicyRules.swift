package import OneTimePassword

/// The answer to a question that may be impossible to answer.
package enum Tristate: UInt8, Equatable, Sendable { case no, unknown, yes }

/// The login for which a policy is requested: what its rules can test.
package final class PolicyRequest {
  /// The service's name in PAM.
  package let service: [UInt8]
  /// The account's name; nil if the user is not known, so that each rule on users and groups may
  /// match or not.
  package let user: [UInt8]?
  /// Whether the account has uid 0.
  package let isSuperuser: Bool
  /// Whether PAM_RHOST is set.
  package let isRemote: Bool
  /// PAM_RHOST if it is an address, otherwise nil.
  package let address: NumericAddress?
  /// Parses an address without a zone.
  package let parse: (_ text: [UInt8]) -> NumericAddress?
  /// Whether the user is in a group; called only if a rule names one.
  package let membership: (_ group: [UInt8]) -> Tristate

  package init(
    service: [UInt8], user: [UInt8]?, isSuperuser: Bool = false, isRemote: Bool,
    address: NumericAddress?,
    parse: @escaping (_ text: [UInt8]) -> NumericAddress?,
    membership: @escaping (_ group: [UInt8]) -> Tristate
  ) {
    self.service = service
    self.user = user
    self.isSuperuser = isSuperuser
    self.isRemote = isRemote
    self.address = address
    (self.parse, self.membership) = (parse, membership)
  }

  /// Whether one of the words of a condition is true. `isLocal`: the login is local to this
  /// machine.
  @inline(never)
  func meets(_ key: PolicyKey, _ words: inout Words, isLocal: Bool) -> Tristate {
    var result = Tristate.no
    while result != .yes, let word = words.next() {
      let found = meets(key, word, isLocal)
      if found.rawValue > result.rawValue { result = found }
    }
    return result
  }

  private func meets(_ key: PolicyKey, _ word: [UInt8], _ isLocal: Bool) -> Tristate {
    if key == .matchService { return word == service ? .yes : .no }
    if key == .matchOrigin { return comes(from: word, isLocal) }
    guard let user else { return .unknown }
    if key == .matchGroup { return membership(word) }
    return word == user ? .yes : .no
  }

  /// A login over the network without an address may come from anywhere, and so may one with a host
  /// name, which the other side chooses: no range loosens anything for it, but each may tighten.
  private func comes(from word: [UInt8], _ isLocal: Bool) -> Tristate {
    if same("local", word) || same("network", word) {
      return same("local", word) == isLocal ? .yes : .no
    }
    guard let address else { return isLocal ? .no : .unknown }
    return AddressRange(word, parse)?.holds(address) == true ? .yes : .no
  }
}

/// The words of a value, separated by spaces and commas. One between double quotes may contain
/// them.
package struct Words {
  private let text: Secret
  private var rest: Range<Int>

  package init(_ text: Secret, _ value: Range<Int>) { (self.text, rest) = (text, value) }

  /// nil at the end; empty if the second quote is missing, or nothing is between the two.
  @inline(never) package mutating func next() -> [UInt8]? {
    var start = rest.lowerBound
    while start < rest.upperBound, isSeparator(start) { start += 1 }
    if start >= rest.upperBound { return nil }
    let isQuoted = text[start] == UInt8(ascii: "\"")
    if isQuoted { start += 1 }
    var end = start
    while end < rest.upperBound, isQuoted ? text[end] != UInt8(ascii: "\"") : !isSeparator(end) {
      end += 1
    }
    let isClosed = !isQuoted || end < rest.upperBound
    rest = min(end + 1, rest.upperBound)..<rest.upperBound
    return text.bytes(in: start..<(isClosed ? end : start))
  }

  private func isSeparator(_ index: Int) -> Bool {
    isBlank(text[index]) || text[index] == UInt8(ascii: ",")
  }
}
