/// The account of a login, as the account database spells its name.
package final class Account: Sendable {
  /// `pw_name`; the name as typed if there is no such account.
  package let name: UserName
  /// nil if there is no such account.
  package let uid: UInt32?
  /// The primary group; nil if there is no such account.
  package let group: UInt32?

  package init(name: UserName, uid: UInt32?, group: UInt32? = nil) {
    self.name = name
    self.uid = uid
    self.group = group
  }
}
