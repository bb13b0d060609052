import PAMSallyport
import Testing

@Suite struct `What libpam is answered` {
  /// The numbers of Linux-PAM's <security/_pam_types.h>.
  @Test(arguments: [
    (ReturnCode.success, Int32(0)), (.ignore, 25), (.refused, 7), (.denied, 6), (.unavailable, 9),
    (.conversation, 19), (.memory, 5),
  ])
  func `is the return code of its name`(_ code: ReturnCode, _ number: Int32) {
    #expect(code.code == number)
  }

  // decisive
  @Test(arguments: [Phase.auth, .account, .session])
  func `is an error where there is no handle, never a yes nor nothing`(_ phase: Phase) {
    let (systemError, answered) = (Int32(4), unsafe perform(phase, of: nil, flags: 0, 0, nil))
    #expect(answered == systemError)
  }
}
