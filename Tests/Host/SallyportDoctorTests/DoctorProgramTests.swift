import CCommand
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor
@testable import SallyportSupport

@Suite struct `Programs that doctor runs` {
  @Test func `They are found in fixed directories and their answer is bounded`() {
    let answer = Machine.runProgram(["head", "-c", "3000000", "/dev/zero"]).value
    #expect(answer?.output.utf8.count == Machine.longestText && answer?.status == 0)
    #expect(Machine.runProgram(["no-such-program-here"]) == .absent)
    #expect(Machine.runProgram(["sh", "-c", "echo oops >&2; exit 3"]).value?.complaint == "oops")
  }

  @Test func `They get a clean environment and no input`() {
    let answer = Machine.runProgram(["env"]).value?.output ?? ""
    #expect(
      answer.split(separator: "\n").sorted() == [
        "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TZ=UTC",
      ])
    #expect(Machine.runProgram(["cat"]).value == CommandOutput())
  }

  @Test func `A signal is told as a shell tells it`() {
    #expect(Machine.runProgram(["sh", "-c", "kill -9 $$"]).value?.status == 137)
  }

  /// That is forked, of a process that loads nothing at that moment: one without other tests.
  @Test func `A library is loaded in a process of its own`() async {
    await #expect(processExitsWith: .success) {
      #expect(Machine().refusal(of: "libc.so.6", "printf") == nil)
      #expect(Machine().refusal(of: "libc.so.6", "pam_sm_authenticate") == "it is no PAM module")
      #expect(Machine().refusal(of: "/no/such/file.so", "x")?.contains("/no/such/file.so") == true)
    }
  }
}
