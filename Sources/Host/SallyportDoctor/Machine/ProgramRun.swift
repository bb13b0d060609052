import CCommand
import CSystem
import Glibc
package import SallyportSupport

/// Runs child processes with limits on their time and output.
package enum ProgramRun {
  /// Runs the program at a path with a clean environment and no input. Keeps up to `limit` bytes
  /// each of its standard output and standard error. Throws if it cannot be started.
  static func run(_ words: [String], seconds: UInt64, limit: Int) throws(SystemError)
    -> CommandOutput
  {
    let (output, errors) = (try Pipe(), try Pipe())
    let child = try spawn(words, output.input, errors.input)
    let (status, texts) = finish(child, [output, errors], within: seconds, limit: limit)
    return CommandOutput(
      status: status < 0 ? -1 : status & 0x7f == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f),
      output: texts[0].replacing("\r\n", with: "\n"),
      errors: texts[1].replacing("\r\n", with: "\n"))
  }

  /// Starts a program in a session of its own, without input and output, and does not wait for it:
  /// it goes on when this process and its terminal have ended.
  package static func detach(_ words: [String]) throws(SystemError) {
    let null = try OpenFile("/dev/null", O_WRONLY)
    _ = try spawn(words, null.number, null.number, in: spawn_in_own_session)
  }

  /// Why a library cannot be loaded as libpam would load a module, tested in a child process; nil
  /// if it can be.
  static func obstacle(toLoading library: String, _ function: String) throws(SystemError) -> String?
  {
    let pipe = try Pipe()
    // SAFETY: both texts live for the call.
    let child = unsafe load_in_child(library, function, pipe.input)
    if child < 0 { throw SystemError(-child) }
    let (status, texts) = finish(child, [pipe], within: 10, limit: 512)
    if !texts[0].isEmpty { return texts[0] }
    return status == 0 ? nil : "loading it ends the process (status \(status))"
  }

  /// `group`: the flag that says what the child is in alone.
  private static func spawn(
    _ words: [String], _ output: Int32, _ errors: Int32,
    in group: Int16 = Int16(POSIX_SPAWN_SETPGROUP)
  ) throws(SystemError) -> pid_t {
    guard let path = words.first else { throw SystemError(EINVAL) }
    let environment = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TZ=UTC"]
    var (child, none) = (pid_t(-1), sigset_t())
    // SAFETY: both are created here and destroyed at the end; all pointers live for the calls.
    var (actions, attributes) = unsafe (posix_spawn_file_actions_t(), posix_spawnattr_t())
    let problem = unsafe withCStrings(words) { words in
      unsafe withCStrings(environment) { environment in
        unsafe sigemptyset(&none)
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, errors, 2)
        unsafe posix_spawnattr_init(&attributes)
        let flags = group | Int16(POSIX_SPAWN_SETSIGMASK)
        unsafe posix_spawnattr_setflags(&attributes, flags)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        return unsafe posix_spawn(&child, path, &actions, &attributes, words, environment)
      }
    }
    unsafe posix_spawnattr_destroy(&attributes)
    unsafe posix_spawn_file_actions_destroy(&actions)
    if problem != 0 { throw SystemError(problem) }
    return child
  }

  /// Returns the wait status, -1 after a timeout, and the bytes from the pipes.
  private static func finish(
    _ child: pid_t, _ pipes: [Pipe], within seconds: UInt64, limit: Int
  ) -> (status: Int32, texts: [String]) {
    let deadline = sys_monotonic() + seconds * 1_000_000_000
    for pipe in pipes { pipe.closeInput() }
    var texts = [[UInt8]](repeating: [], count: pipes.count)
    let ended = drain(pipes, &texts, limit, until: deadline)
    let status = wait(for: child, until: ended ? deadline : 0)
    return (status, texts.map { String(decoding: $0, as: UTF8.self) })
  }

  /// Reads until all pipes end, or until the deadline: then returns false. What exceeds `limit` is
  /// read and dropped.
  private static func drain(
    _ pipes: [Pipe], _ texts: inout [[UInt8]], _ limit: Int, until deadline: UInt64
  ) -> Bool {
    // They are read by their numbers, and must not be closed before.
    defer { withExtendedLifetime(pipes) {} }
    var ends = pipes.map { pollfd(fd: $0.end, events: Int16(POLLIN), revents: 0) }
    var part = [UInt8](repeating: 0, count: 65536)
    while ends.contains(where: { $0.fd >= 0 }) {
      let now = sys_monotonic()
      if now >= deadline { return false }
      let left = Int32(clamping: (deadline - now) / 1_000_000 + 1)
      // SAFETY: the array has as many entries as are passed.
      if unsafe poll(&ends, nfds_t(ends.count), left) < 0 {
        if errno != EINTR { return false }
        continue
      }
      for index in ends.indices where ends[index].fd >= 0 && ends[index].revents != 0 {
        let end = ends[index].fd
        // SAFETY: the buffer lives for the call.
        let got = unsafe part.withUnsafeMutableBytes { unsafe readSome(from: end, into: $0) }
        let count = (try? got.get()) ?? 0
        texts[index] += part.prefix(min(count, limit - texts[index].count))
        if count == 0 { ends[index].fd = -1 }
      }
    }
    return true
  }

  /// Waits for a child; kills it and its process group at the deadline, and then returns -1.
  private static func wait(for child: pid_t, until deadline: UInt64) -> Int32 {
    var status: Int32 = 0
    while true {
      // SAFETY: the pointer lives for the call.
      let done = unsafe waitpid(child, &status, WNOHANG)
      if done == child { return status }
      if done < 0, errno != EINTR { return -1 }
      if sys_monotonic() >= deadline { break }
      sys_sleep(2_000_000)
    }
    kill(-child, SIGKILL)
    kill(child, SIGKILL)
    // SAFETY: as above.
    while unsafe waitpid(child, &status, 0) < 0, errno == EINTR {}
    return -1
  }
}

/// A pipe with the close-on-exec flag, so that programs inherit only what they are given.
private final class Pipe {
  let end: Int32
  private(set) var input: Int32

  init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    // SAFETY: two numbers, filled within the call.
    let problem = unsafe pipe_open(&ends)
    (end, input) = (ends[0], ends[1])
    if problem != 0 { throw SystemError(problem) }
  }

  func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  deinit {
    closeInput()
    if end >= 0 { close(end) }
  }
}

/// Passes the words as an argv array, which ends with NULL.
@unsafe private func withCStrings(
  _ words: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Int32
) -> Int32 {
  // SAFETY: these copies are ours, and are freed after the call.
  var copies = unsafe words.map { unsafe strdup($0) }
  unsafe copies.append(nil)
  let result = unsafe copies.withUnsafeBufferPointer { words in
    guard let base = words.baseAddress else { return ENOMEM }
    return unsafe body(base)
  }
  for index in unsafe copies.indices { unsafe free(copies[index]) }
  return result
}
