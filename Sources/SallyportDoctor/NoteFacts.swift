import OneTimePassword
import SallyportCore
import SallyportSystem

/// What doctor knows of what is kept of one user apart from an enrollment: a file of `unenrolled`.
struct NoteFacts: Equatable {
  let path: String
  /// The login name; nil where even that cannot be told.
  var name: String?
  /// Why it cannot be read. Somebody who is not enrolled is refused by that.
  var trouble: StoreTrouble?
  /// What root said of the user.
  var level: UserNote.Level?
  /// Taken for true where the accounts could not be asked.
  var hasAccount = true
}

extension StoreFacts {
  /// The notes of all users, and why none of them can be read.
  static func notes(of machine: Machine, _ store: Store, in path: String)
    -> ([NoteFacts], StoreTrouble?)
  {
    let directory = "\(path)/unenrolled"
    if let trouble = trouble(of: directory, store) { return ([], trouble) }
    return (machine.paths("\(directory)/*").map { NoteFacts($0, of: machine, store) }, nil)
  }

  /// That of the directory itself: anybody's note meets it.
  private static func trouble(of directory: String, _ store: Store) -> StoreTrouble? {
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
  init(_ path: String, of machine: Machine, _ store: Store) {
    self.init(path: path)
    let file = Array((path.split(separator: "/").last ?? "").utf8)
    // A long name is hashed, and stands in the file only.
    let written = NoteFacts.user(in: path, of: machine)
    guard let user = StoredName(directory: file).user ?? written else {
      trouble = .malformed(path: path, SettingsError(line: 1, .missing("user")))
      return
    }
    name = user.text
    do throws(StoreTrouble) {
      level = try store.note(of: user).level
    } catch {
      trouble = error
    }
    hasAccount = NoteFacts.hasAccount(user)
    // The store itself would look for it elsewhere.
    if let own = user.fileName, own != file { trouble = .otherUser(path: path, found: user) }
  }

  private static func hasAccount(_ user: UserName) -> Bool {
    do throws(StoreTrouble) { return try Accounts.find(user).uid != nil } catch { return true }
  }

  /// Whose it says it is.
  private static func user(in path: String, of machine: Machine) -> UserName? {
    guard let bytes = machine.bytes(path).value, let text = Secret(bytes) else { return nil }
    do throws(SettingsError) {
      return try UserNote.read(text).0
    } catch {
      return nil
    }
  }
}
