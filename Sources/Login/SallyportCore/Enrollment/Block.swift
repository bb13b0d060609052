package import OneTimePassword

/// That nothing of a user is accepted (`sallyport block`), as its file says it
/// (docs/enrollment-format.md).
package struct Block: Equatable, Sendable {
  package let user: UserName
  /// That of the account when it was blocked; nil if there was none.
  package let uid: UInt32?
  /// When it ends; nil if only `--undo` ends it.
  package let until: UnixTime?
  package let since: UnixTime
  /// The member of the helpdesk who set it; nil: root did.
  package let helper: UserName?

  package init(
    user: UserName, uid: UInt32?, until: UnixTime?, since: UnixTime, helper: UserName? = nil
  ) {
    (self.user, self.uid, self.until, self.since) = (user, uid, until, since)
    self.helper = helper
  }

  /// A clock that was set back lets it hold again.
  package func isOver(at now: UnixTime) -> Bool { until.map { now >= $0 } ?? false }
}

extension Block {
  /// The keys of a file, in the order in which they stand.
  package enum Key: Int {
    case version, user, uid, until, since

    package var name: StaticString {
      switch self {
      case .version: "version"
      case .user: "user"
      case .uid: "uid"
      case .until: "until"
      case .since: "since"
      }
    }
  }

  /// Whether the text of a file says that it blocks nobody any more. Anything else than the five
  /// keys, each once and in their order, blocks without an end.
  @inline(never) package static func isOver(_ text: Secret, at now: UnixTime) -> Bool {
    var (count, end) = (0, UInt64?.none)
    do throws(SettingsError) {
      var lines = try SettingsScanner(text)
      while let line = try lines.next() {
        guard case .setting(let name, let value) = line, let key = Key(rawValue: count),
          text.holds(key.name, in: name)
        else { return false }
        if key == .version, !text.holds("1", in: value) { return false }
        if key == .until { end = decimal(text.bytes(in: value)) }
        count += 1
      }
    } catch {
      return false
    }
    guard count == 5, let end, let now = UInt64(exactly: now.seconds) else { return false }
    return now >= end
  }
}
