import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportSupport
package import SallyportSystem

/// The note of one user, a file in `unenrolled`, which is stored apart from an enrollment.
struct NoteFacts: Equatable {
  let path: String
  /// The login name; nil if unknown.
  var name: String?
  /// Why it cannot be read; the user is then refused, if not enrolled.
  var error: StoreTrouble?
  /// The user's own level, which root set; nil also where it was exempt, and that has ended.
  var level: UserNote.Level?
  /// Of the account for which it was set; nil if the note has none.
  var uid: UInt32?
  /// The account's own; nil if there is no account, or if that cannot be seen.
  var accountUID: UInt32?
  /// nil if no account is found, and the account database cannot be read or has other sources than
  /// files, of which one may be away.
  var hasAccount: Bool? = true
  /// The account of another name that has `uid`, where there is none of this name.
  var holder: String?
}

extension StoreFacts {
  /// The notes of all users, and the error if none of them can be read.
  static func notes(of machine: Machine, _ store: Store, in path: String, at now: UnixTime)
    -> ([NoteFacts], StoreTrouble?)
  {
    let directory = "\(path)/unenrolled"
    if let error = error(of: directory, store) { return ([], error) }
    return (machine.paths("\(directory)/*").map { NoteFacts($0, of: machine, store, at: now) }, nil)
  }

  /// The error that reading anybody's note returns, which is then one of the directory.
  private static func error(of directory: String, _ store: Store) -> StoreTrouble? {
    guard let anybody = UserName(Array("root".utf8)) else { return nil }
    do throws(StoreTrouble) {
      _ = try store.note(of: anybody)
      return nil
    } catch {
      return error.path == directory ? error : nil
    }
  }
}

extension NoteFacts {
  init(_ path: String, of machine: Machine, _ store: Store, at now: UnixTime) {
    self.init(path: path)
    let file = Array((path.split(separator: "/").last ?? "").utf8)
    // A long name is hashed, so that only the file has it.
    let written = NoteFacts.user(in: path, of: machine)
    guard let user = StoredName(directory: file).user ?? written else {
      error = .malformed(path: path, SettingsError(line: 1, .missing("user")))
      return
    }
    name = String(decoding: user.bytes, as: UTF8.self)
    do throws(StoreTrouble) {
      let note = try store.note(of: user)
      let isEnded = note.level.isExempt && !note.level.isExempt(at: now)
      (level, uid) = (isEnded ? nil : note.level, note.uid)
    } catch {
      self.error = error
    }
    do throws(StoreTrouble) {
      accountUID = try Accounts.find(user).uid
      let isSeen = accountUID != nil || NameSources(of: "passwd", on: machine).areFiles
      hasAccount = isSeen ? accountUID != nil : nil
      if hasAccount == false, let uid { holder = (try? Accounts.find(uid: uid))?.name.typed }
    } catch {
      hasAccount = nil
    }
    // The store itself would look for the note under another name.
    if let own = user.fileName, own != file { error = .otherUser(path: path, found: user) }
  }

  /// The user whom the file names.
  private static func user(in path: String, of machine: Machine) -> UserName? {
    guard let bytes = machine.bytes(path).value, let text = Secret(bytes) else { return nil }
    return try? UserNote.read(text).0
  }
}

extension Machine {
  /// The levels that root has set, by name, and the notes that cannot be read, by path. One that
  /// has ended is none.
  package func ownLevels(by store: Store, in path: String, at now: UnixTime)
    -> (levels: [String: UserNote.Level], unread: [String])
  {
    let (notes, trouble) = StoreFacts.notes(of: self, store, in: path, at: now)
    var levels: [String: UserNote.Level] = [:]
    for note in notes where note.error == nil {
      if let name = note.name { levels[name] = note.level }
    }
    let unread = notes.filter { $0.error != nil }.map(\.path)
    return (levels, trouble.map { [$0.path] } ?? unread)
  }

  /// The names that are exempt and whose account is not found: deleted, or a source of accounts is
  /// away.
  package func exemptWithoutAccount(by store: Store, in path: String, at now: UnixTime)
    -> [String]
  {
    StoreFacts.notes(of: self, store, in: path, at: now).0
      .filter { $0.error == nil && $0.level.isExempt && $0.hasAccount != true }.compactMap(\.name)
      .sorted()
  }
}
