import SallyportAdministration
import SallyportCore

/// A line of a login in the log: what came of it. Read from text that strangers may have written.
struct LoginLine: Equatable {
  enum Result: Equatable {
    case code(authenticator: [UInt8])
    case backupCode
    case pass
    case refused(reason: [UInt8])
    /// The place is remembered.
    case notAsked
    /// The enrollment changed in the login.
    case enrolled(Change, authenticators: [[UInt8]])
  }

  /// As the module names it.
  enum Change: String {
    case enrolled, added
    /// What was there is suspended.
    case replaced = "replaced-by-pass"
  }

  let user: [UInt8]
  let service: [UInt8]
  let result: Result
  let origin: [UInt8]?
  /// Whether the service of this machine says it, for another program.
  let isOfService: Bool

  /// nil for what is no such line. `isOfService`: of a program whose lines do not begin with the
  /// module's name.
  init?(_ text: [UInt8], isOfService: Bool) {
    self.isOfService = isOfService
    var rest = text[...]
    var named: [UInt8]?
    if !isOfService {
      guard rest.drop("pam_sallyport("), let colon = rest.firstIndex(of: 0x3a) else { return nil }
      named = Array(rest[..<colon])
      rest = rest[colon...]
      guard [":auth): ", ":account): ", ":session): "].contains(where: { rest.drop($0) }) else {
        return nil
      }
    }
    guard let kind = Kind.allCases.first(where: { rest.drop($0.rawValue) }) else { return nil }
    let fields = LoginLine.fields(rest)
    func value(_ key: String) -> [UInt8]? { fields.first { $0.key == key }?.value }
    guard let user = value("user"), let service = named ?? value("service"),
      let result = LoginLine.result(kind, fields)
    else { return nil }
    (self.user, self.service, self.result, origin) = (user, service, result, value("origin"))
  }

  /// How a line begins, as `LogLines` and `LogMessages` write it.
  private enum Kind: String, CaseIterable {
    case code = "code accepted: "
    case backupCode = "backup code accepted: "
    case pass = "pass accepted: "
    case refused = "refused: "
    case denied = "denied: "
    case notAsked = "not asked: this origin is remembered: "
    case changed = "enrollment changed in the login: "
  }

  private static func result(_ kind: Kind, _ fields: [Act.Fact]) -> Result? {
    func all(_ key: String) -> [[UInt8]] { fields.filter { $0.key == key }.map(\.value) }
    switch kind {
    case .code: return all("authenticator").first.map { .code(authenticator: $0) }
    case .backupCode: return .backupCode
    case .pass: return .pass
    case .refused, .denied: return all("reason").first.map { .refused(reason: $0) }
    case .notAsked: return .notAsked
    case .changed:
      let action = all("action").first.map { String(decoding: $0, as: UTF8.self) }
      return action.flatMap(Change.init).map { .enrolled($0, authenticators: all("authenticator")) }
    }
  }

  /// The words that are `key=value`. No value has a blank, but for one that we write.
  private static func fields(_ text: ArraySlice<UInt8>) -> [Act.Fact] {
    let words = text.split(separator: 0x20).map { Array($0) }
    return words.indices.compactMap { index in
      var word = words[index]
      if index + 1 < words.count {
        if word == Array("origin=local(another".utf8) { word += Array("-user)".utf8) }
        // What comes behind it says more of a refusal.
        if word.last == 0x3a { word.removeLast() }
      }
      guard let sign = word.firstIndex(of: 0x3d) else { return nil }
      var value = word[(sign + 1)...]
      if value.count >= 2, value.first == 0x22, value.last == 0x22 {
        value = value.dropFirst().dropLast()
      }
      return Act.Fact(word: Array(word[...sign] + value))
    }
  }
}

extension ArraySlice<UInt8> {
  /// Removes the text at the beginning; false where it begins otherwise.
  fileprivate mutating func drop(_ text: String) -> Bool {
    guard starts(with: text.utf8) else { return false }
    self = dropFirst(text.utf8.count)
    return true
  }
}
