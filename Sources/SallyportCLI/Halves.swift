import Dispatch

/// What `work` makes of the first half of `items` and of the second, at the same time. For what
/// waits for the kernel most of the time, as whoever opens some hundred thousand files does.
func inHalves<Item: Sendable, Part: Sendable>(
  _ items: [Item], _ work: @Sendable (ArraySlice<Item>) -> Part
) -> [Part] {
  let middle = items.count / 2
  // SAFETY: each call initializes its own place, and both have ended before the array is there.
  return unsafe [Part](unsafeUninitializedCapacity: 2) { buffer, count in
    nonisolated(unsafe) let places = unsafe buffer
    DispatchQueue.concurrentPerform(iterations: 2) { half in
      let part = work(half == 0 ? items[..<middle] : items[middle...])
      unsafe places.initializeElement(at: half, to: part)
    }
    count = 2
  }
}
