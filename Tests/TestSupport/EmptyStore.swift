import Foundation
import OneTimePassword
package import SallyportCore

/// Makes a store as documented, with a decoy and nobody in it. The commands have their own way to
/// make one, which needs more than a login does.
package func makeEmptyStore(at root: String) throws {
  var random = Seeded(UInt64(truncatingIfNeeded: root.hashValue))
  for directory in [root, root + "/users", root + "/decoy"] { try makeDirectory(directory) }
  guard let user = UserName("decoy".utf8), let name = Label("decoy".utf8) else { throw NotMade() }
  let decoy = Enrollment(
    id: random.id(), user: user, uid: nil, created: UnixTime(1_772_528_400),
    authenticators: [
      Authenticator(
        id: random.id(), name: name, parameters: .standard, secret: try secret(random.bytes(20)),
        initialLastAccepted: nil, created: UnixTime(1_772_528_400))
    ],
    backupCodes: BackupCodeSet(
      id: random.id(), salt: random.bytes(16), digests: (0..<10).map { _ in random.bytes(32) }))
  guard let text = decoy.written() else { throw NotMade() }
  try makeFile(root + "/decoy/enrollment", bytes(text))
  try makeFile(root + "/decoy/state", try StateRecord.fresh(LoginState(initialFor: decoy)))
}

/// Writes a note as documented, in the place of one that is there.
package func makeNote(_ note: UserNote, on user: UserName, at root: String) throws {
  let level =
    switch note.level {
    case nil: "from = none\nlevel = none"
    case .exempt(nil): "from = none\nlevel = exempt"
    case .exempt(.some): "from = none\nlevel = none"
    case .required(let from): "from = \(from.map { "\($0.seconds)" } ?? "none")\nlevel = required"
    }
  let uid = note.uid.map { "# uid = \($0)\n" } ?? ""
  let end =
    if case .exempt(let until?) = note.level { "# exempt until = \(until.seconds)\n" } else { "" }
  if !FileManager.default.fileExists(atPath: root + "/unenrolled") {
    try makeDirectory(root + "/unenrolled")
  }
  let text = "\(uid)\(end)version = 1\nuser = \(user.text)\n\(level)\n"
  try makeFile(root + "/unenrolled/" + user.text, Array(text.utf8))
}

private func makeDirectory(_ path: String) throws {
  try FileManager.default.createDirectory(
    atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
}

private func makeFile(_ path: String, _ bytes: [UInt8]) throws {
  let isMade = FileManager.default.createFile(
    atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
  if !isMade { throw NotMade() }
}

/// Blocks by this file of `blocked` or `blocked-uids`, as a command does; `until`: as the file has
/// it.
package func makeBlock(
  _ file: String, in place: String = "blocked", until: String = "none", at root: String
) throws {
  if !FileManager.default.fileExists(atPath: "\(root)/\(place)") {
    try makeDirectory("\(root)/\(place)")
  }
  let text = "# a comment\nversion = 1\nuser = alice\nuid = 1000\nuntil = \(until)\nsince = 1000\n"
  try makeFile("\(root)/\(place)/\(file)", Array(text.utf8))
}
