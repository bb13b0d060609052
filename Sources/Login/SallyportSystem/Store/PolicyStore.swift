internal import CSystem
package import OneTimePassword
package import SallyportCore

/// The result of reading a policy file.
package final class PolicyReading: Sendable {
  package let policy: Policy
  /// Why it is not the policy in the present file.
  package let trouble: StoreTrouble?
  /// Whether it is what could be read of the present file, tightened: there is no good one.
  package let isStrict: Bool
  /// Whether it could not be read who verifies codes.
  package let lacksVerifier: Bool

  package init(
    _ policy: Policy, trouble: StoreTrouble? = nil, isStrict: Bool = false,
    lacksVerifier: Bool = false
  ) {
    (self.policy, self.trouble) = (policy, trouble)
    (self.isStrict, self.lacksVerifier) = (isStrict, lacksVerifier)
  }
}

extension Store {
  package static let usualPolicy: StaticString = "/etc/security/sallyport.conf"

  /// Says which fleet this machine belongs to, and that it does to one.
  package static let fleetFile: StaticString = "/etc/security/sallyport-fleet.conf"

  /// Whether this machine belongs to a fleet; true if that cannot be determined.
  package var isInFleet: Bool {
    // SAFETY: the text ends with NUL and lives for ever.
    unsafe sys_may_be_there(Store.fleetFile.utf8Start)
  }

  /// Where the catalogs are, one named after each language.
  package static let messages: StaticString = "/usr/share/sallyport/messages/"

  /// The catalog of a language (`Policy.language`), of a region that has none that of its language:
  /// a file as a policy file must be. `root`: what is before the usual path.
  package func catalog(of language: UInt64, under root: [UInt8] = []) throws(StoreTrouble)
    -> (Path, Secret)
  {
    let path = Path(root + bytes(of: Store.messages) + Policy.name(ofLanguage: language))
    let wider = Policy.withoutRegion(language)
    if let text = try read(policy: path, optional: wider != language) { return (path, text) }
    guard wider != language else { throw .outOfMemory }
    return try catalog(of: wider, under: root)
  }

  package func sentences(in language: UInt64) throws(StoreTrouble) -> Sentences {
    let (path, text) = try catalog(of: language)
    do throws(SettingsError) {
      var lines = try SettingsScanner(text)
      return try Sentences(catalog: text, &lines)
    } catch {
      throw .malformed(path: path.text, error)
    }
  }

  package static let sessionSocket: StaticString = "/run/sallyport/session"

  /// Whether sallyport-session may be there for the users of this machine.
  package var hasSessions: Bool {
    // SAFETY: as above.
    unsafe sys_may_be_there(Store.sessionSocket.utf8Start)
  }

  /// The policy that applies to a login: from the file `path`, or else from the usual file, which
  /// need not exist. Keeps a copy of a valid file, which applies while the file is not valid.
  package func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading {
    let file = Path(path ?? bytes(of: Store.usualPolicy))
    var (trouble, broken): (StoreTrouble?, PolicyFile?)
    do throws(StoreTrouble) {
      guard let text = try read(policy: file, optional: path == nil) else {
        return PolicyReading(base)
      }
      let policy = PolicyFile(text, base: base, login)
      if let problem = policy.problem {
        broken = policy
        throw .malformed(path: file.text, problem)
      }
      keep(text, of: file)
      return PolicyReading(policy.policy(base))
    } catch {
      trouble = error
    }
    if let text = lastGood(of: file) {
      let policy = PolicyFile(text, base: base, login)
      if policy.problem == nil { return PolicyReading(policy.policy(base), trouble: trouble) }
    }
    var policy = base
    if let broken { policy = broken.policy(base) } else { policy.tighten() }
    return PolicyReading(
      policy, trouble: trouble, isStrict: true, lacksVerifier: broken?.lacksVerifier != false)
  }

  /// The text of a policy file that only the right owner can change; nil if it is missing and
  /// `optional`.
  package func policyText(at path: [UInt8], optional: Bool) throws(StoreTrouble) -> Secret? {
    try read(policy: Path(path), optional: optional)
  }

  @inline(never)
  private func read(policy path: Path, optional: Bool) throws(StoreTrouble) -> Secret? {
    let file: Descriptor
    do throws(Errno) {
      file = try Descriptor(path, sys_for_reading)
    } catch {
      if optional, error.code == ENOENT { return nil }
      throw fileTrouble(error, path, in: AT_FDCWD, path)
    }
    if let flaw = checks.flaw(ofPolicy: file.facts) { throw .unsafe(path: path.text, flaw) }
    guard let text = Secret(count: Int(file.facts.size)) else { throw .outOfMemory }
    let number = file.number
    // SAFETY: the buffer lives for the call.
    let done = unsafe text.withMutableBytes { unsafe StoredFile.read(number, $0) }
    guard try check(Int64(done), "read", path) == Int64(text.count) else {
      throw .unsettled(path: path.text)
    }
    return text
  }

  // MARK: the last valid one

  private var goodOnes: Path { root / "policy.good" }

  private func nameOfGoodOne(_ path: Path) throws(StoreTrouble) -> Path {
    Path(hexadecimal(try Store.digest(of: path.bytes)))
  }

  /// The last valid text of this file; nil if none is kept.
  package func lastGoodPolicy(at path: [UInt8]) -> Secret? { lastGood(of: Path(path)) }

  private func lastGood(of path: Path) -> Secret? {
    do throws(StoreTrouble) {
      try checks.walk(to: goodOnes)
      return try read(policy: goodOnes / (try nameOfGoodOne(path)), optional: true)
    } catch {
      return nil
    }
  }

  /// Best effort: no login fails because of it, and nothing is written if the file has not changed.
  @inline(never) private func keep(_ text: Secret, of path: Path) {
    do throws(StoreTrouble) {
      let name = try nameOfGoodOne(path)
      if let kept = try read(policy: goodOnes / name, optional: true),
        constantTimeEquals(kept, text)
      {
        return
      }
      try checks.walk(to: root)
      let guarded = try CriticalSection()
      defer { guarded.putBack() }
      // SAFETY: the C string lives for the call.
      _ = unsafe sys_make_directory(AT_FDCWD, goodOnes.cString)
      let directory = try openParent(goodOnes)
      let store = try openParent(root)
      // In the store itself, where the next command removes what a crash leaves.
      // A name of its own: several threads of one process may be here.
      let made = Leftover.named(Leftover.unfinished, hexadecimal(try Random.identifier()))
      // SAFETY: as above. After a success there is no such file.
      defer { _ = unsafe sys_remove_file(store.number, made.cString) }
      try SallyportSystem.write(text, as: made, in: store, root)
      // SAFETY: as above.
      _ = unsafe sys_rename(store.number, made.cString, directory.number, name.cString)
    } catch {
      // If it is needed, an older copy or the strict policy applies.
    }
  }
}
