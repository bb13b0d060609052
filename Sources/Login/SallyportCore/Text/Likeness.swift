import OneTimePassword

/// Whether a text is a name with at most one byte put in, left out or replaced, or two neighbours
/// swapped; in either case of letters, and with `-` for `_`. `isStart`: any text may follow.
@inline(never)
package func isNear(_ text: [UInt8], _ name: StaticString, isStart: Bool = false) -> Bool {
  let name = bytes(of: name)
  var place = 0
  while isSame(text, place, name, place) { place += 1 }
  // One left out, one put in, one replaced.
  if ends(text, place, name, place + 1, isStart) || ends(text, place + 1, name, place, isStart)
    || ends(text, place + 1, name, place + 1, isStart)
  {
    return true
  }
  return isSame(text, place, name, place + 1) && isSame(text, place + 1, name, place)
    && ends(text, place + 2, name, place + 2, isStart)
}

/// Whether the rest of the text, from a place of its own, is the rest of the name.
@inline(never) private func ends(
  _ text: [UInt8], _ one: Int, _ name: [UInt8], _ other: Int, _ isStart: Bool
) -> Bool {
  var (one, other) = (one, other)
  while isSame(text, one, name, other) { (one, other) = (one + 1, other + 1) }
  return other >= name.count && (isStart || one >= text.count)
}

@inline(never) private func isSame(_ text: [UInt8], _ one: Int, _ name: [UInt8], _ other: Int)
  -> Bool
{
  one < text.count && other < name.count && folded(text[one]) == folded(name[other])
}

private func folded(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "-") ? 0x7f : byte | 0x20 }
