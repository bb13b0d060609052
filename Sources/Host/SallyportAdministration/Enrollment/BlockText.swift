package import OneTimePassword
package import SallyportCore

extension Block {
  /// Begins the first line of a block that a helper has set. A comment: to the version before it is
  /// a block like any other, which root alone lifts.
  private static let heading: StaticString = "# helper = "

  /// The text of its file; nil if memory is short.
  package func written() -> Secret? {
    func value(_ number: UInt64?) -> [UInt8] { number.map(decimalText) ?? bytes(of: "none") }
    var text = helper.map { bytes(of: Block.heading) + $0.bytes + bytes(of: "\n") } ?? []
    text += bytes(of: "# Sallyport: change it with sallyport(1) only.\n")
    let values = [
      bytes(of: "1"), user.bytes, value(uid.map(UInt64.init)),
      value(until.map { UInt64(max($0.seconds, 0)) }), value(UInt64(max(since.seconds, 0))),
    ]
    for (index, value) in values.enumerated() {
      guard let key = Key(rawValue: index) else { return nil }
      text += bytes(of: key.name) + bytes(of: " = ") + value + bytes(of: "\n")
    }
    return Secret(text)
  }

  /// What a file says; nil where it is not understood, and blocks without an end.
  package static func read(_ text: Secret) -> Block? {
    var values: [Range<Int>] = []
    do throws(SettingsError) {
      var lines = try SettingsScanner(text)
      while let line = try lines.next() {
        guard case .setting(let name, let value) = line, let key = Key(rawValue: values.count),
          text.holds(key.name, in: name)
        else { return nil }
        values.append(value)
      }
    } catch {
      return nil
    }
    guard values.count == 5, text.holds("1", in: values[0]),
      let user = UserName(text.bytes(in: values[1])),
      let since = decimal(text.bytes(in: values[4])).flatMap(Int64.init(exactly:))
    else { return nil }
    // A number that is none is taken for `none`, which is the stricter one.
    let (uid, until) = (decimal(text.bytes(in: values[2])), decimal(text.bytes(in: values[3])))
    return Block(
      user: user, uid: uid.flatMap(UInt32.init(exactly:)),
      until: until.flatMap(Int64.init(exactly:)).map { UnixTime($0) }, since: UnixTime(since),
      helper: helper(in: text))
  }

  /// nil: root has set it.
  private static func helper(in text: Secret) -> UserName? {
    let start = heading.utf8CodeUnitCount
    guard text.holds(heading, in: 0..<min(start, text.count)),
      let end = text.first(UInt8(ascii: "\n"), in: start..<text.count)
    else { return nil }
    return UserName(text.bytes(in: start..<end))
  }
}
