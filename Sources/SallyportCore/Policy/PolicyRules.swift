import OneTimePassword

/// Something that may have been impossible to find out.
package enum Tristate: UInt8, Equatable, Sendable { case no, unknown, yes }

/// What a policy file's rules look at, of one login.
package final class PolicyRequest {
  /// PAM's name of the service.
  package let service: [UInt8]
  /// The account's name; nil where it is not known whose login it is, so that each rule on users
  /// and groups may match or not.
  package let user: [UInt8]?
  /// Whether PAM_RHOST is set.
  package let isRemote: Bool
  /// PAM_RHOST, where that is an address.
  package let address: NumericAddress?
  /// Takes the text of an address, without zone.
  package let parse: (_ text: [UInt8]) -> NumericAddress?
  /// Whether the user is in that group; asked only where a rule names one.
  package let membership: (_ group: [UInt8]) -> Tristate

  package init(
    service: [UInt8], user: [UInt8]?, isRemote: Bool, address: NumericAddress?,
    parse: @escaping (_ text: [UInt8]) -> NumericAddress?,
    membership: @escaping (_ group: [UInt8]) -> Tristate
  ) {
    self.service = service
    self.user = user
    self.isRemote = isRemote
    self.address = address
    (self.parse, self.membership) = (parse, membership)
  }

  /// Whether one of the words of a rule's condition is true; `isLocal`: the login comes from this
  /// machine itself.
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

  /// A login over the network without an address, or with a host's name, which is the stranger's to
  /// choose, may come from any: no range loosens anything for it, and each may tighten.
  private func comes(from word: [UInt8], _ isLocal: Bool) -> Tristate {
    if same("local", word) || same("network", word) {
      return same("local", word) == isLocal ? .yes : .no
    }
    guard let address else { return isLocal ? .no : .unknown }
    return AddressRange(word, parse)?.holds(address) == true ? .yes : .no
  }
}

/// The words of a value, which spaces and commas part.
struct Words {
  let text: Secret
  private var rest: Range<Int>

  init(_ text: Secret, _ value: Range<Int>) { (self.text, rest) = (text, value) }

  @inline(never) mutating func next() -> [UInt8]? {
    var start = rest.lowerBound
    while start < rest.upperBound, isSeparator(start) { start += 1 }
    var end = start
    while end < rest.upperBound, !isSeparator(end) { end += 1 }
    rest = end..<rest.upperBound
    return start < end ? text.bytes(in: start..<end) : nil
  }

  private func isSeparator(_ index: Int) -> Bool {
    isBlank(text[index]) || text[index] == UInt8(ascii: ",")
  }
}
