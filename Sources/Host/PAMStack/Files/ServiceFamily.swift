/// The services of one program. A code that is asked for in one of them alone is no second factor:
/// the same password gets in by the others.
package struct ServiceFamily: Equatable, Sendable {
  /// One of the services, and how people come to it.
  package struct Member: Equatable, Sendable {
    package let service: String
    /// A command, such as `sudo -i`.
    package let way: String
    /// Whether the program is known to run this service also where it has no file, so that
    /// `other` decides.
    let isRunWithoutFile: Bool

    package init(_ service: String, by way: String, withoutFile: Bool = true) {
      (self.service, self.way, isRunWithoutFile) = (service, way, withoutFile)
    }
  }

  /// Names that people type and that are no services.
  private var programs: [String] = []
  package private(set) var members: [Member]
  /// Services of the same program that are reported, and never changed: nobody is there to type a
  /// code.
  private var unattended: [String] = []

  private static let all = [
    ServiceFamily(
      programs: ["sudo-rs"],
      members: [Member("sudo", by: "sudo"), Member("sudo-i", by: "sudo -i")]),
    ServiceFamily(
      members: [Member("su", by: "su"), Member("su-l", by: "su -")]),
    ServiceFamily(
      members: [
        Member("login", by: "login"),
        Member("remote", by: "login -h", withoutFile: false),
      ]),
    ServiceFamily(
      programs: ["pkexec", "run0"], members: [Member("polkit-1", by: "pkexec and run0")]),
    ServiceFamily(
      members: [
        Member("gdm-password", by: "gdm"),
        Member("gdm-switchable-auth", by: "gdm", withoutFile: false),
        Member("gdm-smartcard", by: "gdm with a smart card", withoutFile: false),
        Member("gdm-fingerprint", by: "gdm with a fingerprint", withoutFile: false),
      ], unattended: ["gdm-autologin"]),
    ServiceFamily(
      members: [Member("lightdm", by: "lightdm")], unattended: ["lightdm-autologin"]),
    ServiceFamily(members: [Member("sddm", by: "sddm")], unattended: ["sddm-autologin"]),
    ServiceFamily(
      members: [Member("plasmalogin", by: "plasmalogin")],
      unattended: ["plasmalogin-autologin", "plasmalogin-passwordless"]),
  ]

  /// Services that log somebody in without anybody there.
  static let unattended = Set(all.flatMap(\.unattended))

  /// The family of a service, or of a program. `sudo`: the services that sudoers names, which are
  /// sudo's as well, each with the command that comes to it. `way`: to a service of no known
  /// program.
  package init(of name: String, sudo: [Member] = [], way: String? = nil) {
    let isSudo = sudo.contains { $0.service == name }
    let found = ServiceFamily.all.first { family in
      isSudo ? family.has("sudo") : family.has(name)
    }
    self = found ?? ServiceFamily(members: [Member(name, by: way ?? name)])
    if has("sudo") {
      members += sudo.filter { !has($0.service) }
    }
  }

  private init(programs: [String] = [], members: [Member], unattended: [String] = []) {
    (self.programs, self.members, self.unattended) = (programs, members, unattended)
  }

  private func has(_ name: String) -> Bool {
    programs.contains(name) || members.contains { $0.service == name }
  }
}

extension ServiceFamily {
  /// The services to change where `name` was typed: those of the family that have a file, a file
  /// that another one includes first. A service that was typed is there in any case.
  package func services(typed name: String, in directory: StackDirectory) -> [String] {
    let stacks = members.map { directory.stack(of: $0.service) }.filter { $0.file != nil }
    let included = Set(stacks.flatMap { stack in stack.files.filter { $0 != stack.file } })
    let isIncluded = { (stack: ServiceStack) in stack.file.map(included.contains) == true }
    let present = (stacks.filter(isIncluded) + stacks.filter { !isIncluded($0) }).filter { stack in
      // One that lets nobody in needs no code.
      let analysis = directory.analysis(stack)
      return stack.service == name || !analysis.lines.isEmpty
        || !analysis.findings.contains(where: \.keepsEverybodyOut)
    }.map(\.service)
    if programs.contains(name) { return present.isEmpty ? [members[0].service] : present }
    return present.contains(name) ? present : [name] + present
  }

  /// The members that let somebody in without a code. `isByOther`: they have no file, so that
  /// `other` does.
  package func open(in directory: StackDirectory) -> [(member: Member, isByOther: Bool)] {
    members.compactMap { member in
      let stack = directory.stack(of: member.service)
      guard stack.file != nil || member.isRunWithoutFile else { return nil }
      return directory.analysis(stack).letsInUnasked ? (member, stack.file == nil) : nil
    }
  }

  /// The services of this machine that log somebody in without anybody there.
  package func unattended(in directory: StackDirectory) -> [String] {
    unattended.filter { directory.stack(of: $0).file != nil }
  }
}

extension StackAnalysis {
  /// Somebody gets in, and nobody is asked for a code.
  fileprivate var letsInUnasked: Bool {
    let demands = line(.account)?.arguments.contains("demand") == true
    return line(.auth) == nil && !demands && !findings.contains(where: \.keepsEverybodyOut)
  }
}
