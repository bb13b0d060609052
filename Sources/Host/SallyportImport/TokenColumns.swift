import OneTimePassword

/// What a column of a list of tokens says.
package enum TokenColumn: String, CaseIterable, Sendable {
  case serial, secret, type, period, digits, algorithm, counter, user
  /// Nothing that is stored.
  case other = "-"

  /// The heads that vendors and other systems give it, without blanks and signs.
  fileprivate var heads: [String] {
    switch self {
    case .serial:
      [
        "serial", "serialnumber", "serialno", "serialnr", "sn", "tokenserial", "tokenserialnumber",
        "tokensn", "deviceserial", "deviceserialnumber", "tokenid", "token",
      ]
    case .secret:
      [
        "secret", "secretkey", "seed", "tokenseed", "key", "tokenkey", "sharedsecret", "otpkey",
        "seedkey", "tokensecret", "secrethex", "secretkeyhex", "seedhex", "keyhex", "hexsecret",
        "hexseed", "hexkey", "secretbase32", "secretkeybase32", "seedbase32", "keybase32",
        "base32secret", "base32seed", "base32key",
      ]
    case .type: ["type", "otptype", "tokentype", "mode"]
    case .period:
      [
        "timeinterval", "period", "interval", "timestep", "step", "timeintervalinseconds",
        "timeintervalseconds", "timeintervals", "periods", "periodseconds", "periodinseconds",
        "timesteps", "timestepseconds", "timestepinseconds", "otpperiod",
      ]
    case .digits: ["digits", "otplength", "otpdigits", "codelength", "otplen", "length"]
    case .algorithm:
      ["algorithm", "hash", "hashfunction", "hashalgorithm", "hmacalgorithm", "algo", "hashlib"]
    case .counter: ["counter", "movingfactor", "eventcounter", "hotpcounter", "initialcounter"]
    case .user:
      ["upn", "user", "username", "login", "userprincipalname", "assignedto", "loginname"]
    case .other: []
    }
  }

  /// Nothing of the word is copied: without a head it may be a secret.
  init(head: Secret) {
    self =
      TokenColumn.allCases.first { column in
        column.heads.contains { TokenColumn.isSpelled($0, head) }
      } ?? .other
  }

  /// In any case, without blanks and signs.
  private static func isSpelled(_ name: String, _ head: Secret) -> Bool {
    var letters = name.utf8.makeIterator()
    for index in 0..<head.count {
      let byte = head[index]
      let isLetter = (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte)
      if isLetter, letters.next() != lowercased(byte) { return false }
    }
    return letters.next() == nil
  }

  /// Parts of heads that are not known, which may mean what a token cannot do without.
  static let hints: [(part: String, column: TokenColumn)] = [
    ("period", .period), ("interval", .period), ("step", .period), ("digit", .digits),
    ("length", .digits), ("algo", .algorithm), ("hash", .algorithm), ("sha1", .algorithm),
    ("sha2", .algorithm), ("sha5", .algorithm), ("counter", .counter),
  ]

  /// Reads `serial,secret,-,period`; nil where a name is none, or two are the same.
  package static func list(_ text: String) -> [TokenColumn]? {
    var columns: [TokenColumn] = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let column = TokenColumn(rawValue: String(word)) else { return nil }
      if column != .other, columns.contains(column) { return nil }
      columns.append(column)
    }
    return columns.contains(.serial) && columns.contains(.secret) ? columns : nil
  }
}
