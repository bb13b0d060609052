package import OneTimePassword
package import SallyportCore
import SallyportSupport

/// An authenticator of another module, and the state in which it continues here.
package struct ImportedAuthenticator {
  package let parameters: CodeParameters
  package let secret: Secret
  /// The greatest time step or counter whose code has been used there.
  package var lastAccepted: UInt64?
  /// The clock offset that the other module allows for, in time steps.
  package var drift: Int32 = 0
  /// What the source calls it, where it has names that can be shown.
  package var name: Label?
  /// Set in an app's export, which may hold many: counted from 1.
  package var entry: Int?
  /// Whether it remembers how far its clock is off, as nobody can set it: TOTP only.
  package var isToken = false

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
package struct Remark: Hashable, Sendable {
  /// The word for JSON.
  package let code: String
  package let text: String

  private init(_ code: String, _ text: String) { (self.code, self.text) = (code, text) }

  /// Codes up to the last one used there count as used.
  package static let lastStepCarried = Remark("last-step-carried", "last used step carried over")
  package static let counterCarried = Remark("counter-carried", "counter carried over")
  /// The other module allowed codes to be reused.
  package static let reuseAllowed = Remark(
    "reuse-was-allowed", "codes shown up to now count as used (no readable DISALLOW_REUSE)")
  package static let lastCodeNotFound = Remark(
    "last-code-not-found", "the last code matches no time near its use: not carried over")
  package static let aheadOfClock = Remark(
    "ahead-of-clock", "the last code is of a future time: codes are refused until then")
  package static let clearTextPassword = Remark(
    "clear-text-password", "the file holds a clear-text password: not imported, remove it")
  package static let doubled = Remark("doubled", "listed twice")

  package static func scratchCodes(_ count: Int) -> Remark {
    Remark("scratch-codes-weak", "\(counted(count, "scratch code")) (weak: 26 bits each)")
  }

  /// Of a kind that cannot be an authenticator here.
  package static func skipped(_ entry: Int, _ problem: SourceProblem) -> Remark {
    Remark("entry-skipped", "entry \(entry) left out: \(problem.text)")
  }

  /// They come after a line at which the other module stops looking.
  package static func deadScratchCodes(_ count: Int) -> Remark {
    Remark(
      "scratch-codes-dead",
      "\(counted(count, "scratch code")) after another line not imported: they did not work there")
  }

  /// They exceed the size of a set.
  package static func scratchCodesDropped(_ count: Int) -> Remark {
    Remark(
      "scratch-codes-too-many", "\(counted(count, "scratch code")) too many, not imported")
  }

  /// New ones have 160 bits.
  package static func shortSecret(bits: Int) -> Remark {
    Remark("secret-short", "secret of \(bits) bits")
  }

  /// In steps or counters.
  package static func windowNarrowed(theirs: Int, ours: Int) -> Remark {
    Remark("window-narrowed", "codes up to \(theirs) off were accepted there, here up to \(ours)")
  }

  /// By more than is accepted here.
  package static func clockOff(steps: Int64) -> Remark {
    let off = driftText(Int32(clamping: steps)) ?? "right"
    return Remark("clock-off", "its clock is \(off), so its codes are refused: set it")
  }

  package static func digitsOfLastCode(line: Int, code: Int) -> Remark {
    Remark("digits-of-last-code", "\(code) digits as in its last code, but the line says \(line)")
  }
}
