package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// An authenticator of another module, and the state in which it continues here.
package struct ImportedAuthenticator {
  package let parameters: CodeParameters
  package let secret: Secret
  /// The greatest time step or counter whose code has been used there.
  package var lastAccepted: UInt64?
  /// The clock offset that the other module allows for, in time steps.
  package var drift: Int32 = 0

  package func isSame(as stored: Authenticator) -> Bool {
    stored.parameters == parameters && constantTimeEquals(stored.secret, secret)
  }
}

/// What a source says about one user: the user's own file, or a line in a list.
package struct Candidate {
  /// Spelled as in the source.
  package let user: [UInt8]
  /// Set in a list: counted from 1.
  package var line: Int?
  /// Set if the user has a file.
  package var path: String?
  package var authenticator: ImportedAuthenticator?
  /// Eight digits each.
  package var scratchCodes: [Secret] = []
  package var remarks: [Remark] = []
  /// Why nothing of this can be imported.
  package var obstacle: Obstacle?

  package init(
    user: [UInt8], line: Int? = nil, path: String? = nil,
    authenticator: ImportedAuthenticator? = nil, obstacle: Obstacle? = nil
  ) {
    (self.user, self.line, self.path) = (user, line, path)
    (self.authenticator, self.obstacle) = (authenticator, obstacle)
  }
}

/// What to tell about an import.
package enum Remark: Hashable {
  /// Codes up to the last one used there count as used.
  case lastStepCarried
  case counterCarried
  /// The other module allowed codes to be reused; those up to now count as used.
  case reuseAllowed
  /// The last code in pam_oath's file is not the code of any time near its last use.
  case lastCodeNotFound
  /// The last code belongs to a time in the future; codes are refused until then.
  case aheadOfClock
  /// This many scratch codes, of 26 bits each, were imported.
  case scratchCodes(Int)
  /// This many come after a line at which the other module stops looking, and so never worked.
  case deadScratchCodes(Int)
  /// This many exceed the size of a set.
  case scratchCodesDropped(Int)
  /// The secret has this many bits; new ones have 160.
  case shortSecret(bits: Int)
  /// The number of steps or counters accepted by the other module, and the smaller one accepted
  /// here.
  case windowNarrowed(theirs: Int, ours: Int)
  /// The app's clock is off by this many steps, more than is accepted here.
  case clockOff(steps: Int64)
  /// The file also has a clear-text password, which is not imported.
  case clearTextPassword
  /// The digits that the line specifies, and those of the last code used there.
  case digitsOfLastCode(line: Int, code: Int)
  /// The same authenticator is listed twice.
  case doubled
}

/// Why a user was not imported.
package enum Obstacle: Equatable {
  /// A fault in a line of the list, or of the user's file.
  case line(LineProblem)
  case userName
  case noAccount
  /// The user is enrolled already, with another secret or with more authenticators than these.
  case enrolled(authenticators: Int)
  case tooManyAuthenticators(Int)
  /// Shorter than 80 bits.
  case weakSecret(bits: Int)
  /// All bytes are the same.
  case constantSecret
  case secretTooLong(bytes: Int)
  case file(path: String, FileProblem)
  case store(StoreTrouble)
}

/// Why a file was not read.
package enum FileProblem: Error, Equatable {
  case symbolicLink
  case notRegular
  case owner(UInt32, wanted: UInt32)
  /// Other users may read or write it; with the permission bits.
  case openToOthers(mode: UInt32)
  case tooLong(most: Int)
  case cannotRead(errno: Int32)
}
