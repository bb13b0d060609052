import CCommand

/// What SELinux needs of the store: the type of its label. Of another one it denies even root's
/// programs, such as sshd and sudo, some or all of what a login does there.
struct StoreLabel: Equatable {
  /// A path of the store with a wrong type, and that type.
  let path: String
  let type: String
  /// Whether SELinux denies; otherwise it only logs.
  let isEnforced: Bool

  /// The type that the policy of our package gives the store.
  static let type = "var_auth_t"

  /// nil if SELinux is off, or all labels are right.
  init?(of machine: Machine, in store: String) {
    guard let mode = machine.text("/sys/fs/selinux/enforce").value else { return nil }
    let wrong = [store, "\(store)/users"].lazy.compactMap { path in
      machine.labelType(path).map { (path, $0) }
    }.first { $0.1 != StoreLabel.type }
    guard let wrong else { return nil }
    self.init(path: wrong.0, type: wrong.1, isEnforced: mode.first == "1")
  }

  init(path: String, type: String, isEnforced: Bool) {
    (self.path, self.type, self.isEnforced) = (path, type, isEnforced)
  }
}

extension Machine {
  /// The third part of a file's label: `user:role:type:level`. nil if it has none.
  fileprivate func labelType(_ path: String) -> String? {
    // SAFETY: as many bytes are initialized as were read, and no more than fit.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 256) { buffer, count in
      let found = unsafe inspect_label(root + path, buffer.baseAddress, buffer.count)
      count = min(max(Int(found), 0), buffer.count)
    }
    let parts = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self).split(separator: ":")
    return parts.count > 2 ? String(parts[2]) : nil
  }

  /// Gives a store that was just made the labels of SELinux's policy, if they are others.
  package func restoreLabels(of store: String) {
    if StoreLabel(of: self, in: store) != nil { _ = run(["restorecon", "-R", store]) }
  }
}
