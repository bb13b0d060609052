import OneTimePassword

/// What a character of a response means. Keyboards and apps of other languages write digits,
/// blanks and dashes of their own, and pasted text brings blanks that nobody sees.
struct TypedCharacter: Equatable {
  /// In bytes, at least 1.
  let length: Int
  let meaning: Meaning

  enum Meaning: Equatable {
    /// `script`: alike in all digits of one writing.
    case digit(UInt8, script: UInt8)
    /// Nothing, also a mark that nobody sees.
    case blank
    /// Nothing, but never left out behind a password.
    case dash
    /// Itself, or no UTF-8.
    case other
  }

  /// Of the character that begins at `index`.
  @inline(never) init(_ typed: Secret, at index: Int) {
    let byte = typed[index]
    if byte < 0x80 {
      length = 1
      if byte == UInt8(ascii: "-") {
        meaning = .dash
      } else if isBlank(byte) || byte == 0x0d {
        meaning = .blank
      } else {
        meaning = isDigit(byte) ? .digit(byte & 15, script: 0) : .other
      }
      return
    }
    let (odd, isDash) = TypedCharacter.odd(byte, typed[index + 1], typed[index + 2])
    guard odd == 0 else {
      (length, meaning) = (odd, isDash ? .dash : .blank)
      return
    }
    (length, meaning) = TypedCharacter.digit(typed, index) ?? (1, .other)
  }

  /// The zero of each writing that has decimal digits (Unicode, general category Nd). The nine
  /// after it differ in the last byte alone, which is the greater one by their value.
  private static let zeros: StaticString =
    """
    \u{660}\u{6f0}\u{7c0}\u{966}\u{9e6}\u{a66}\u{ae6}\u{b66}\u{be6}\
    \u{c66}\u{ce6}\u{d66}\u{de6}\u{e50}\u{ed0}\u{f20}\u{1040}\u{1090}\
    \u{17e0}\u{1810}\u{1946}\u{19d0}\u{1a80}\u{1a90}\u{1b50}\u{1bb0}\u{1c40}\
    \u{1c50}\u{a620}\u{a8d0}\u{a900}\u{a9d0}\u{a9f0}\u{aa50}\u{abf0}\u{ff10}\
    \u{104a0}\u{10d30}\u{10d40}\u{11066}\u{110f0}\u{11136}\u{111d0}\u{112f0}\u{11450}\
    \u{114d0}\u{11650}\u{116c0}\u{116d0}\u{116da}\u{11730}\u{118e0}\u{11950}\u{11bf0}\
    \u{11c50}\u{11d50}\u{11da0}\u{11de0}\u{11f50}\u{16130}\u{16a60}\u{16ac0}\u{16b50}\
    \u{16d70}\u{1ccf0}\u{1d7ce}\u{1d7d8}\u{1d7e2}\u{1d7ec}\u{1d7f6}\u{1e140}\u{1e2f0}\
    \u{1e4f0}\u{1e5f1}\u{1e950}\u{1fbf0}
    """

  private static func digit(_ typed: Secret, _ index: Int) -> (Int, Meaning)? {
    var (start, script) = (0, UInt8(1))
    while start < zeros.utf8CodeUnitCount {
      // SAFETY: the text is valid UTF-8, and `start` the first byte of a character in it.
      let head = unsafe zeros.utf8Start[start]
      let length = head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4
      let last = length &- 1
      var position = 0
      // SAFETY: `position` is within the character.
      while position < last, unsafe typed[index &+ position] == zeros.utf8Start[start &+ position] {
        position &+= 1
      }
      // SAFETY: as above.
      let value = unsafe typed[index &+ last] &- zeros.utf8Start[start &+ last]
      if position == last, value < 10 { return (length, .digit(value, script: script)) }
      (start, script) = (start &+ length, script &+ 1)
    }
    return nil
  }

  /// The length of a blank or dash that begins with these bytes; 0 for anything else.
  private static func odd(_ first: UInt8, _ second: UInt8, _ third: UInt8) -> (Int, isDash: Bool) {
    switch (first, second) {
    // U+00A0 and U+061C; the soft hyphen.
    case (0xc2, 0xa0), (0xd8, 0x9c): return (2, false)
    case (0xc2, 0xad): return (2, true)
    // U+2000 to U+200F, U+202A to U+202F: blanks and marks of direction. U+2010 to U+2015.
    case (0xe2, 0x80):
      let isDash = third >= 0x90 && third <= 0x95
      let isBlank = third >= 0x80 && third < 0x90 || third >= 0xaa && third <= 0xaf
      return (isDash || isBlank ? 3 : 0, isDash)
    // U+205F to U+2069, U+3000, U+FEFF; U+2212 and U+FF0D.
    case (0xe2, 0x81): return (third >= 0x9f && third <= 0xa9 ? 3 : 0, false)
    case (0xe3, 0x80): return (third == 0x80 ? 3 : 0, false)
    case (0xef, 0xbb): return (third == 0xbf ? 3 : 0, false)
    case (0xe2, 0x88): return (third == 0x92 ? 3 : 0, true)
    case (0xef, 0xbc): return (third == 0x8d ? 3 : 0, true)
    case _: return (0, false)
    }
  }
}
