import TestSupport

/// An auth stack by chance, as people write them, of modules that the command knows and modules
/// that it does not.
struct ChanceStack {
  /// What a module does, whatever the command takes it for.
  enum Role: CaseIterable {
    case password, factor, unknown, quiet, permit, deny, rootOnly
  }

  struct Line {
    let control: String
    /// With its arguments.
    let module: String
    let role: Role
    /// By which its answer is found.
    let key: String

    var text: String { "auth \(control) \(module) \(key)" }
  }

  /// A line of ours, put in by hand.
  struct Ours {
    fileprivate let isInner: Bool
    fileprivate let index: Int
    fileprivate let text: String
    /// In front of it, for those with a key.
    fileprivate let key: String?
  }

  /// In the service's own file, and in the one that it includes.
  private(set) var lines: [Line] = []
  private(set) var inner: [Line] = []
  /// After which own line, and how.
  private var including: (index: Int, word: String)?
  private(set) var random: Seeded

  private static let modules: [Role: [String]] = [
    .password: [
      "pam_unix.so", "pam_unix.so", "pam_sss.so", "pam_krb5.so", "pam_sss.so ignore_unknown_user",
      "pam_radius_auth.so localifdown",
    ],
    .factor: [
      "pam_u2f.so", "pam_fprintd.so", "pam_u2f.so nouserok", "pam_google_authenticator.so nullok",
    ],
    .unknown: ["pam_exec.so", "pam_corp.so"],
    .quiet: ["pam_nologin.so", "pam_succeed_if.so", "pam_listfile.so"],
    .permit: ["pam_permit.so"], .deny: ["pam_deny.so"], .rootOnly: ["pam_rootok.so"],
  ]
  /// Their names, ours among them.
  static let names =
    Set(modules.values.joined().compactMap { $0.split(separator: " ").first.map(String.init) })
    .union(["pam_sallyport.so"])

  /// Mostly passwords.
  private static let roles: [Role] = [
    .password, .password, .password, .password, .unknown, .unknown, .factor, .quiet, .quiet,
    .permit, .deny, .rootOnly,
  ]

  init(seed: UInt64) {
    random = Seeded(seed &* 2 &+ 1)
    lines = file("own", of: 5)
    if random.below(3) == 0 {
      inner = file("inner", of: 3)
      including = (random.below(lines.count), random.one(of: ["include", "substack"]))
    }
  }

  private mutating func file(_ name: String, of most: Int) -> [Line] {
    var drafts = (0...random.below(most)).map { _ in draft(ChanceStack.roles, control()) }
    if random.below(3) == 0 {
      drafts.insert(contentsOf: primary(), at: random.below(drafts.count + 1))
    }
    if random.below(8) == 0 { drafts.insert(draft([.rootOnly], "sufficient"), at: 0) }
    return drafts.enumerated().map { index, draft in
      Line(control: draft.control, module: draft.module, role: draft.role, key: "\(name)\(index)")
    }
  }

  private typealias Draft = (control: String, module: String, role: Role)

  private mutating func draft(_ roles: [Role], _ control: String) -> Draft {
    let role = random.one(of: roles)
    return (control, random.one(of: ChanceStack.modules[role] ?? []), role)
  }

  /// As pam-auth-update writes it: each jumps over those behind it and the refusal.
  private mutating func primary() -> [Draft] {
    let count = 1 + random.below(2)
    let checkers = (0..<count).map { index in
      draft([.password, .password, .unknown, .factor], "[success=\(count - index) default=ignore]")
    }
    return checkers + [draft([.deny], "requisite"), draft([.permit], "required")]
  }

  private mutating func control() -> String {
    if random.below(3) > 0 {
      return random.one(of: ["required", "required", "requisite", "sufficient", "optional"])
    }
    let success = random.one(of: ["ok", "done", "1", "2", "ignore"])
    let others = random.one(of: ["ignore", "die", "bad", "1"])
    let ignore = random.one(of: ["ignore", "ok", "1", "bad"])
    return "[success=\(success) ignore=\(ignore) default=\(others)]"
  }

  /// As `pam enable` writes it, and otherwise.
  private static let keyControls = [
    "success=done perm_denied=ignore default=die",
    "success=done perm_denied=ignore default=ignore",
    "success=ok perm_denied=ignore default=bad",
    "success=1 perm_denied=ignore default=die",
    "success=done default=die",
  ]

  /// Where a line of ours may stand, and how.
  mutating func ours() -> Ours {
    let isInner = including != nil && random.below(4) == 0
    let index = random.below((isInner ? inner.count : lines.count) + 1)
    let control = random.below(2) == 0 ? "required" : control()
    let key = random.below(3) == 0 ? random.one(of: ChanceStack.keyControls) : nil
    return Ours(
      isInner: isInner, index: index, text: "auth \(control) pam_sallyport.so",
      key: key.map { "auth [\($0)] pam_sallyport.so after-key" })
  }

  /// The files of the directory of services.
  func files(with ours: Ours? = nil) -> [String: String] {
    var own = lines.indices.map { index in
      guard let including, including.index == index else { return lines[index].text }
      return "\(lines[index].text)\nauth \(including.word) inner"
    }
    var inner = inner.map(\.text)
    if let ours {
      if ours.isInner { inner.insert(ours.text, at: ours.index) }
      if !ours.isInner { own.insert(ours.text, at: ours.index) }
      if let key = ours.key { own.insert(key, at: 0) }
    }
    let ends = ["account required pam_unix.so", "session required pam_unix.so", ""]
    return [
      "service": (own + ends).joined(separator: "\n"),
      "inner": (inner + [""]).joined(separator: "\n"),
    ]
  }

  /// What somebody's login is to the modules of the stack.
  mutating func login() -> ChanceLogin { ChanceLogin(lines + inner, &random) }
}

/// What every line but ours answers in one login. Kept apart from what the command assumes: these
/// are the answers that modules of each kind have been seen to give.
struct ChanceLogin {
  let isPasswordRight: Bool
  let isFactorRight: Bool
  /// The caller is root, which pam_rootok lets in.
  let isRoot: Bool
  /// sshd has accepted one.
  let hasKey: Bool
  /// Some module that is not known said anything but no.
  private(set) var unknownAgreed = false
  private(set) var answers: [String: String] = [:]

  private enum Unknowns { case refuse, agree, any }

  fileprivate init(_ lines: [ChanceStack.Line], _ random: inout Seeded) {
    isPasswordRight = random.below(2) == 0
    isFactorRight = random.below(3) == 0
    isRoot = random.below(6) == 0
    hasKey = random.below(2) == 0
    let unknowns: Unknowns = random.one(of: [.refuse, .refuse, .agree, .any])
    for line in lines {
      let answer = random.one(of: may(line, unknowns))
      answers[line.key] = answer
      if line.role == .unknown, !ChanceLogin.refusals.contains(answer) { unknownAgreed = true }
    }
  }

  /// No password, fingerprint or the like was right, and nobody is root.
  var isBare: Bool { !isPasswordRight && !isFactorRight && !isRoot }

  private static let refusals = [
    "auth_err", "auth_err", "user_unknown", "authinfo_unavail", "perm_denied", "maxtries",
    "conv_err", "system_err", "service_err", "cred_insufficient", "try_again", "abort",
  ]

  /// A right password is not known to each module that checks passwords.
  private func may(_ line: ChanceStack.Line, _ unknowns: Unknowns) -> [String] {
    let no = ChanceLogin.refusals
    // Only where the line has a word for it: ignore_unknown_user, localifdown, nouserok, nullok.
    let ignored = line.module.hasSuffix(".so") ? [] : ["ignore", "ignore", "ignore"]
    let yes = Array(repeating: "success", count: 3 * no.count)
    switch line.role {
    case .password: return no + ignored + (isPasswordRight ? yes + ["new_authtok_reqd"] : [])
    case .factor: return no + ignored + (isFactorRight ? yes : [])
    case .unknown:
      switch unknowns {
      case .refuse: return no
      case .agree: return ["success"]
      case .any:
        return no + Array(repeating: "success", count: 8) + ["ignore", "ignore"]
          + ["new_authtok_reqd"]
      }
    case .quiet: return ["success", "success", "success", "ignore", "auth_err", "perm_denied"]
    case .permit: return ["success"]
    case .deny: return ["auth_err"]
    case .rootOnly: return [isRoot ? "success" : "auth_err"]
    }
  }
}
