/// The options of `pam enable`.
package struct StackOptions: Equatable {
  /// nil: if the stack allows it.
  var enroll: Bool?
  var demand = false
  var nullok = false
  /// A key that sshd has accepted replaces the password as the first factor.
  var afterKey = false
  /// The path from `--store`; nil for the usual store.
  var store: String?

  package init(
    enroll: Bool? = nil, demand: Bool = false, nullok: Bool = false, afterKey: Bool = false,
    store: String? = nil
  ) {
    (self.enroll, self.demand, self.nullok) = (enroll, demand, nullok)
    (self.afterKey, self.store) = (afterKey, store)
  }
}

/// Why our lines were not added to a service's file, or not removed.
package enum StackRefusal: Error, Equatable {
  /// The caller is not root. `verb` is the command to repeat as root.
  case notRoot(verb: String)
  /// Not a valid file name in /etc/pam.d.
  case notAService(String)
  /// No file in /etc/pam.d or in the vendor's directories. `known` are the services that have one.
  case noSuchService(String, known: [String])
  /// The service has no auth lines of its own; those of `other` apply.
  case noAuthLines(String)
  /// The program never runs the auth phase.
  case neverAuthenticates(String)
  /// The program logs somebody in without anybody there, who could type a code.
  case nobodyThere(String)
  /// The program has one field, and the module that asks for the password, if there is one, is not
  /// known to accept it from our line.
  case oneField(service: String, StackFinding?)
  /// The code would be the only factor.
  case onlyFactor(String)
  /// The service's own file has our line already.
  case enabledAlready(service: String, StackLocation)
  /// A file that the service includes has our line already.
  case enabledElsewhere(service: String, StackLocation)
  case notEnabled(service: String)
  /// The module is not in libpam's directory.
  case noModule(String)
  /// The findings in the stack as it is, or as it would be.
  case unsafe(service: String, [StackFinding])
  /// The findings in another service, which includes the file.
  case harms(service: String, other: String, [StackFinding])
  /// `--enroll` is not possible, because of these findings.
  case cannotEnroll(service: String, [StackFinding])
  case cannotDemand(service: String)
  /// No line of the service's own file is for the password alone, so none can be disabled.
  case noPasswordLine(String)
  /// The line for the password also brings in these modules, which would be disabled with it.
  case moreThanPassword(String, modules: [String])
  /// With `after-key`, these services, which include the file, would refuse everybody.
  case passwordElsewhere(String, services: [String])
  /// sshd_services in the policy does not name the service, so a key does not count in it.
  case keyNotBelieved(String)
  /// A jump counts our line: without the line, it would skip a different one.
  case jumpCountsUs(StackLocation)
  /// Nobody known could log in afterwards. `people`: those who would be refused, with the reason.
  /// `idle`: the enrolled for whom sudoers has no rule.
  case locksOutEverybody(service: String, people: [String], idle: [String])
  /// sudo would ask for root's code, as this sudoers option says (`targetpw`), but root is not
  /// enrolled.
  case rootNotEnrolled(service: String, word: String)
  /// Another program changed the file meanwhile.
  case changedMeanwhile(path: String)
  case busy(path: String)
  case system(path: String, errno: Int32)
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
