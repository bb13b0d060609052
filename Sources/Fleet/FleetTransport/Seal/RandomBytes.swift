import CSystem

/// Fills it from the kernel; false where there are none.
func fill(_ random: inout [UInt8]) -> Bool {
  let count = random.count
  // SAFETY: as many bytes as are said.
  return unsafe sys_random(&random, count) == Int64(count)
}
