package import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// An authenticator as another module has it, and the place from which it goes on here.
package struct ImportedAuthenticator {
  package let parameters: CodeParameters
  package let secret: Secret
  /// The greatest time step or counter whose code has been used there.
  package var lastAccepted: UInt64?
  /// The offset of its clock that was allowed for there, in time steps.
  package var drift: Int32 = 0

  package func isSame(as stored: Authenticator) -> Bool {
    stored.parameters == parameters && constantTimeEquals(stored.secret, secret)
  }
}

/// What a source has of one user: a file of his own, or a line of everybody's.
package struct Candidate {
  /// As the source spells the name.
  package let user: [UInt8]
  /// In a list.
  package var line: Int?
  /// A file of his own.
  package var path: String?
  package var authenticator: ImportedAuthenticator?
  /// Eight digits each.
  package var scratchCodes: [Secret] = []
  package var remarks: [Remark] = []
  /// Why nothing of this can be taken.
  package var obstacle: Obstacle?

  package init(
    user: [UInt8], line: Int? = nil, path: String? = nil,
    authenticator: ImportedAuthenticator? = nil, obstacle: Obstacle? = nil
  ) {
    (self.user, self.line, self.path) = (user, line, path)
    (self.authenticator, self.obstacle) = (authenticator, obstacle)
  }
}

/// What people are told of what was taken.
package enum Remark: Hashable {
  /// Codes up to the last one used there are used here.
  case lastStepCarried
  case counterCarried
  /// The other module let codes be used again: those shown up to now count as used.
  case reuseAllowed
  /// pam_oath's last code is not that of any time around its last use.
  case lastCodeNotFound
  /// The last code is of a time to come: codes are refused until then.
  case aheadOfClock
  /// So many scratch codes came along, of 26 bits each.
  case scratchCodes(Int)
  /// So many stand behind a line at which the other module stops looking: they were dead.
  case deadScratchCodes(Int)
  /// More than a set can have.
  case scratchCodesDropped(Int)
  /// The secret has so many bits; new ones have 160.
  case shortSecret(bits: Int)
  /// The other module accepted codes so many steps, or counters, away; here it is fewer.
  case windowNarrowed(theirs: Int, ours: Int)
  /// The app's clock is so many steps off, more than is accepted here.
  case clockOff(steps: Int64)
  /// A clear-text password stands beside it and is not imported.
  case clearTextPassword
  /// The line means so many digits, the codes used there had others.
  case digitsOfLastCode(line: Int, code: Int)
  /// The same authenticator listed twice.
  case doubled
}

/// Why a user is not imported.
package enum Obstacle: Equatable {
  /// In a line of a list, or of a file of his own.
  case line(LineProblem)
  case userName
  case noAccount
  /// Somebody enrolled has another secret, or more than these.
  case enrolled(authenticators: Int)
  case tooManyAuthenticators(Int)
  /// Fewer than 80 bits.
  case weakSecret(bits: Int)
  /// Every byte is the same.
  case constantSecret
  case secretTooLong(bytes: Int)
  case file(path: String, FileProblem)
  case store(StoreTrouble)
}

/// Why a file is not read.
package enum FileProblem: Error, Equatable {
  case symbolicLink
  case notRegular
  case owner(UInt32, wanted: UInt32)
  /// Others may read or write it: the permission bits.
  case openToOthers(mode: UInt32)
  case tooLong(most: Int)
  case cannotRead(errno: Int32)
}
