import CService

/// Starts threads.
package enum Threads {
  /// Runs `body` on a thread of its own, for which nobody waits. 0, or a negative errno.
  package static func start(stack: Int = 512 * 1024, _ body: @escaping @Sendable () -> Void)
    -> Int32
  {
    // SAFETY: the box is taken over by the thread, or released here where there is none.
    let box = unsafe Unmanaged.passRetained(Body(body))
    let result = unsafe service_start(stack, runBody, box.toOpaque())
    if result < 0 { unsafe box.release() }
    return result
  }
}

/// Runs `body` on a thread of its own. Its stack has room for the modules of the name service.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(ServiceError) {
  try ServiceError.check(Threads.start(body), "pthread_create")
}

@unsafe private func runBody(_ box: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  // SAFETY: the box that `start` gave away.
  if let box = unsafe box { unsafe Unmanaged<Body>.fromOpaque(box).takeRetainedValue().run() }
  return nil
}

private final class Body: Sendable {
  let run: @Sendable () -> Void
  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
