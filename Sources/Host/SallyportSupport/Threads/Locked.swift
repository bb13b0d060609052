import Glibc

/// A value that one thread at a time has. The mutex is the C library's: the thread sanitizer
/// follows it, and not Swift's own, which the kernel hands over.
@safe package final class Locked<Value: Sendable>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  package init(_ value: Value) {
    self.value = value
    // SAFETY: nobody else has it yet, and it is freed with this object. A usual mutex cannot fail.
    unsafe mutex = UnsafeMutablePointer.allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    // SAFETY: a thread in `withLock` holds a reference, so there is none.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Not for a thread that has it already.
  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    // SAFETY: it lives as long as this object; so for the call below.
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
