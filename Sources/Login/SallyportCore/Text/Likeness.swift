import OneTimePassword

/// Whether a text is a name with at most one byte put in, left out or replaced, or two neighbours
/// swapped; in either case of letters, and with `-` for `_`. `isStart`: any text may follow.
@inline(never)
package func isNear(_ text: [UInt8], _ name: StaticString, isStart: Bool = false) -> Bool {
  let name = bytes(of: name)
  var place = 0
  while isSame(text, at: place, as: name, at: place) { place += 1 }
  // One left out, one put in, one replaced.
  if ends(text, at: place, as: name, at: place + 1, isStart)
    || ends(text, at: place + 1, as: name, at: place, isStart)
    || ends(text, at: place + 1, as: name, at: place + 1, isStart)
  {
    return true
  }
  return isSame(text, at: place, as: name, at: place + 1)
    && isSame(text, at: place + 1, as: name, at: place)
    && ends(text, at: place + 2, as: name, at: place + 2, isStart)
}

/// Whether the rest of the text, from a place of its own, is the rest of the name.
@inline(never) private func ends(
  _ text: [UInt8], at one: Int, as name: [UInt8], at other: Int, _ isStart: Bool
) -> Bool {
  var (one, other) = (one, other)
  while isSame(text, at: one, as: name, at: other) { (one, other) = (one + 1, other + 1) }
  return other >= name.count && (isStart || one >= text.count)
}

@inline(never) private func isSame(
  _ text: [UInt8], at one: Int, as name: [UInt8], at other: Int
) -> Bool {
  one < text.count && other < name.count && folded(text[one]) == folded(name[other])
}

private func folded(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "-") ? 0x7f : byte | 0x20 }
