import ArgumentParser
import Glibc
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportVerifier

struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Back up or restore the fleet key and identity, encrypted, or change the key.",
    discussion: """
      For the safe, and for the next verifier:
        sallyport-verifier key show > copy      on a verifier
        sallyport-verifier key check copy       there: the copy can be opened
        sallyport-verifier key take copy        on the next verifier, before init
      The passphrase is asked for on the terminal, or is the first line of standard input.
      """,
    subcommands: [
      Show.self, Check.self, Take.self, NextKey.self, KeyStatus.self, FinishKey.self,
      ReplaceKey.self,
    ])

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print both, encrypted under a new passphrase.")

    @OptionGroup var common: Common

    func run() throws {
      try common.actAsOwner()
      let copy = try common.copy()
      let passphrase = try Passphrase.new()
      do throws(KeyBackup.Fault) {
        let text = try copy.sealed(under: passphrase)
        print(String(decoding: text, as: UTF8.self), terminator: "")
      } catch {
        throw Failure(error.text("the copy"))
      }
      tell("keep it apart from the database's backups; then: sallyport-verifier key check FILE")
    }
  }

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Verify that a copy can be decrypted and has the keys of this verifier.")

    @OptionGroup var common: Common

    @Argument(help: "The output of key show.")
    var file: String

    func run() throws {
      // As the user who types it: the copy may be where the owner of the directory may not read.
      let text = try contents(file)
      try common.actAsOwner()
      let (copy, ours) = (try openCopy(text, of: file), try common.copy())
      guard constantTimeEquals(copy.key, ours.key),
        constantTimeEquals(copy.identity, ours.identity)
      else { throw Failure("\(file): has other keys than this verifier's: make a new copy") }
      try common.confirm(ours)
      print("\(file) can be decrypted, and has this verifier's keys")
    }
  }

  struct Take: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Restore the keys from a copy, on another verifier of the same fleet.")

    @OptionGroup var common: Common

    @Argument(help: "The output of key show.")
    var file: String

    func run() throws {
      let text = try contents(file)
      try common.makeDirectory()
      try common.actAsOwner()
      let copy = try openCopy(text, of: file)
      let keys = try using(file) { (_) throws(PrivateFile.Fault) in
        try FleetKey.files(copy.key, at: common.keyFile)
      }
      for (path, bytes) in [(common.pathOfIdentity, copy.identity)] + keys {
        try using(path) { (path) throws(PrivateFile.Fault) in try PrivateFile.make(path, bytes) }
      }
      try common.confirm(copy)
      print("made \(common.keyFile) and \(common.pathOfIdentity)")
    }
  }
}

private func openCopy(_ text: [UInt8], of file: String) throws -> KeyBackup {
  try rethrow(
    { () throws(KeyBackup.Fault) in
      try KeyBackup.open(text, under: try Passphrase.known())
    }, as: { Failure($0.text(file)) })
}

/// At most 64 KiB of a file.
private func contents(_ file: String) throws -> [UInt8] {
  try rethrow(
    { () throws(SystemError) in
      try OpenFile(file, O_RDONLY).bytes(65_536)
    }, as: { Failure("\(file): \(errnoDescription($0.number))") })
}

extension Common {
  private var copiedFile: String { directory + "/key.copied" }

  /// The files as they are.
  fileprivate func copy() throws -> KeyBackup {
    KeyBackup(
      key: try usingKeys { () throws(FleetKey.FileFault) in
        try FleetKey.contents(at: keyFile)
      },
      identity: try using(pathOfIdentity) { (path) throws(PrivateFile.Fault) in
        try PrivateFile.read(path)
      })
  }

  /// Notes that there is a copy of these keys that can be opened.
  fileprivate func confirm(_ copy: KeyBackup) throws {
    try using(copiedFile) { (path) throws(PrivateFile.Fault) in
      guard let digest = copy.digest else { throw .outOfMemory }
      // One of other keys is void.
      removeFile(path)
      try PrivateFile.make(path, digest)
    }
  }

  /// Whether a copy of the keys was looked at.
  var hasCopy: Bool {
    guard let digest = try? copy().digest, let noted = try? PrivateFile.read(copiedFile) else {
      return false
    }
    return constantTimeEquals(noted, digest)
  }
}

extension KeyBackup {
  /// By which both are known again, in hexadecimal.
  fileprivate var digest: Secret? {
    guard let one = try? SHA256.digest(key), let two = try? SHA256.digest(identity) else {
      return nil
    }
    return Secret(hexadecimal(one + two))
  }
}

extension KeyBackup.Fault {
  fileprivate func text(_ file: String) -> String {
    switch self {
    case .notACopy: "\(file): not a copy of keys, or incomplete"
    case .otherForm: "\(file): made by a later version of this command"
    case .wrongPassphrase: "\(file): wrong passphrase, or the copy was modified"
    case .failed: "libcrypto failed, or memory is short (128 MiB are needed)"
    }
  }
}
