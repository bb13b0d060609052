/// Whom the rules of polkit name: its administrators in each file, and, in those that are not of a
/// package, everybody whom a rule lets do something without an administrator.
struct PolkitNames {
  private(set) var found = FoundNames()
  private let files: RuleFiles

  init(_ files: RuleFiles) { self.files = files }

  private static let packaged = "/usr/share/polkit-1/rules.d"
  private static let directories = [
    "/etc/polkit-1/rules.d", "/run/polkit-1/rules.d", "/usr/local/share/polkit-1/rules.d", packaged,
  ]
  /// It has polkit go by the files of before there were rules.
  private static let asksOlder = "49-polkit-pkla-compat.rules"
  /// Every polkit that goes by rules brings it.
  private static let usual = "50-default.rules"
  /// With a session, to turn the machine off and the like.
  private static let harmless = "org.freedesktop.login1."

  mutating func read() {
    var (hasRules, goesByOlder) = (false, false)
    for directory in PolkitNames.directories {
      guard let names = files.names(directory) else {
        found.miss("\(directory) cannot be read")
        continue
      }
      for name in names where name.hasSuffix(".rules") {
        if name == PolkitNames.usual { hasRules = true }
        if name == PolkitNames.asksOlder {
          goesByOlder = true
        } else {
          read("\(directory)/\(name)", isPackaged: directory == PolkitNames.packaged)
        }
      }
    }
    if goesByOlder || !hasRules { readOlder() }
  }

  private mutating func read(_ path: String, isPackaged: Bool) {
    let text: String
    switch files.text(path) {
    case .absent: return
    case .unseen(let why): return found.miss(why)
    case .seen(let seen): text = seen
    }
    guard let rules = PolkitRules(text) else {
      // What a package lets people do makes nobody root; whom it has as administrators is no
      // secret.
      if !isPackaged { found.miss("\(path): not understood") }
      for identity in PolkitNames.identities(in: text) { take(administrator: identity, path) }
      return
    }
    for identity in rules.administrators.flatMap({ $0 }) { take(administrator: identity, path) }
    if !isPackaged { for rule in rules.rules { take(rule, path) } }
  }

  /// `unix-group:NAME` and the like, wherever they stand.
  private static func identities(in text: String) -> [String] {
    text.split { "\"'".contains($0) }.map(String.init).filter { $0.hasPrefix("unix-") }
  }

  private mutating func take(administrator identity: String, _ path: String) {
    let words = identity.split(separator: ":", maxSplits: 1).map(String.init)
    switch words.first {
    case "unix-user" where words.count == 2:
      found.add(UInt32(words[1]).map { .number($0) } ?? .user(words[1]), at: path)
    case "unix-group" where words.count == 2 && UInt32(words[1]) == 0: break
    case "unix-group" where words.count == 2 && UInt32(words[1]) == nil:
      found.add(.group(words[1]), at: path)
    case _: found.miss("\(path): who is \(identity)")
    }
  }

  private mutating func take(_ rule: PolkitRules.Rule, _ path: String) {
    if ["NO", "AUTH_ADMIN", "AUTH_ADMIN_KEEP"].contains(rule.result) { return }
    let actions = rule.actions + rule.prefixes
    if !actions.isEmpty, actions.allSatisfy({ $0.hasPrefix(PolkitNames.harmless) }) { return }
    for user in rule.users { found.add(.user(user), at: path) }
    for group in rule.groups { found.add(.group(group), at: path) }
    if rule.users.isEmpty, rule.groups.isEmpty { found.add(.everybody, at: path) }
  }

  private mutating func readOlder() {
    let roots = ["/etc/polkit-1/localauthority", "/var/lib/polkit-1/localauthority"]
    for root in roots {
      for directory in files.names(root) ?? [] {
        for name in files.names("\(root)/\(directory)") ?? [] where name.hasSuffix(".pkla") {
          found.miss("\(root)/\(directory)/\(name): not understood")
        }
      }
    }
    let directory = "/etc/polkit-1/localauthority.conf.d"
    for name in files.names(directory) ?? [] where name.hasSuffix(".conf") {
      found.miss("\(directory)/\(name): not understood")
    }
  }
}
