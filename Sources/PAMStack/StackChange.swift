/// What an administrator may ask for when a service is turned on.
package struct StackWishes: Equatable {
  /// nil: where the walk of the stack allows it.
  var enroll: Bool?
  var demand = false
  var nullok = false
  /// The first factor is a key that sshd has accepted, in place of a password.
  var afterKey = false
  /// `--store`
  var store: String?

  package init(
    enroll: Bool? = nil, demand: Bool = false, nullok: Bool = false, afterKey: Bool = false,
    store: String? = nil
  ) {
    (self.enroll, self.demand, self.nullok) = (enroll, demand, nullok)
    (self.afterKey, self.store) = (afterKey, store)
  }
}

/// Why lines of ours are not put into a service's file, or not taken out.
package enum StackRefusal: Error, Equatable {
  /// `verb`: what was asked for, to be tried as root.
  case notRoot(verb: String)
  /// Not a name that a file of pam.d can have.
  case notAService(String)
  /// Neither in /etc/pam.d nor among the vendor's.
  case noSuchService(String, known: [String])
  /// The service has no auth lines of its own: those of `other` count.
  case noAuthLines(String)
  /// The program never runs the auth phase.
  case neverAuthenticates(String)
  /// The program has one field, and what asks for the password, if anything does, is not known to
  /// take it from our line.
  case oneField(service: String, StackFinding?)
  /// Our code would be the only thing that is asked for.
  case onlyFactor(String)
  /// Our line is there already, in this file.
  case enabledAlready(service: String, StackLocation)
  /// Our line is there by a file that this one includes.
  case enabledElsewhere(service: String, StackLocation)
  case notEnabled(service: String)
  /// The module is not where libpam looks.
  case noModule(String)
  /// As the stack is, or would be.
  case unsafe(service: String, [StackFinding])
  /// `--enroll`, and these say why not.
  case cannotEnroll(service: String, [StackFinding])
  case cannotDemand(service: String)
  /// No line of the service's own file is for the password alone, so none can be left out.
  case noPasswordLine(String)
  /// The line for the password brings these modules too, which would be left out with it.
  case moreThanPassword(String, modules: [String])
  /// `after-key` would refuse everybody in these services, which include the file.
  case passwordElsewhere(String, services: [String])
  /// The policy's sshd_services does not name the service: no key is believed in it.
  case keyNotBelieved(String)
  /// A jump counts our line: without it, it would leave out another.
  case jumpCountsUs(StackLocation)
  /// Nobody is enrolled, and those who are not are refused.
  case nobodyEnrolled(service: String)
  /// sudo would ask for root's code by this word of sudoers (`targetpw`), and root has none.
  case rootNotEnrolled(service: String, word: String)
  /// Somebody else changed the file meanwhile.
  case changedMeanwhile(path: String)
  case busy(path: String)
  case system(path: String, errno: Int32)
}

/// A service's file before and after.
package struct StackChange {
  package let service: String
  /// The administrator's file; where it is a link, what it leads to is written.
  package let path: String
  /// nil where only the vendor has a file: a new one is made from it.
  package let before: ServiceFile?
  /// nil where the file goes, since the vendor's says the same.
  package let after: ServiceFile?
  /// What diffs are shown against.
  let shown: ServiceFile
  package let analysis: StackAnalysis
  /// Services that include the file, and change with it.
  package let dependents: [String]

  /// Whether the file is as it was to be, also where writing it ended in an error.
  package func isWritten(in directory: StackDirectory) -> Bool {
    directory.content(of: path) == after?.bytes
  }

  package var changesNothing: Bool { before == after && before != nil }
}
