/// The options of `pam enable`.
package struct StackOptions: Equatable {
  /// nil: if the stack allows it.
  var enroll: Bool?
  var demand = false
  var nullok = false
  /// A key that sshd has accepted replaces the password as the first factor.
  var afterKey = false
  /// A line of its own for those with a key, before the password.
  var keyOrPassword = false
  /// The path from `--store`; nil for the usual store.
  var store: String?

  package init(
    enroll: Bool? = nil, demand: Bool = false, nullok: Bool = false, afterKey: Bool = false,
    keyOrPassword: Bool = false,
    store: String? = nil
  ) {
    (self.enroll, self.demand, self.nullok) = (enroll, demand, nullok)
    (self.afterKey, self.keyOrPassword, self.store) = (afterKey, keyOrPassword, store)
  }
}

/// A service's file before and after.
package struct StackChange {
  package let service: String
  /// The administrator's file. If it is a symbolic link, its target is written.
  package let path: String
  /// nil if only the vendor has a file, which is then copied.
  package let before: ServiceFile?
  /// nil if the file is removed, since the vendor's has the same content.
  package let after: ServiceFile?
  /// The file that diffs are against.
  let shown: ServiceFile
  package let analysis: StackAnalysis
  /// Services that include the file, and so change with it.
  package let dependents: [String]

  /// Whether the file has its new content, even if writing it ended in an error.
  package func isWritten(in directory: StackDirectory) -> Bool {
    directory.content(of: path) == after?.bytes
  }

  package var changesNothing: Bool { before == after && before != nil }

  /// The change that takes this one back.
  package var reversed: StackChange {
    StackChange(
      service: service, path: path, before: after, after: before, shown: after ?? shown,
      analysis: analysis, dependents: dependents)
  }
}

extension StackDirectory {
  /// The same files as they are once the change is written.
  package func assuming(_ change: StackChange) -> StackDirectory {
    assuming(change.after?.bytes, at: change.path)
  }
}
