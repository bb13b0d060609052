// Names that are given now. A `Label` of an enrollment of before may break these rules, and is
// read.

extension Label {
  /// Whether each of its characters can be seen: none is blank but the space, and none is one that
  /// Unicode lets a terminal ignore (Default_Ignorable_Code_Point, beyond those that no label has).
  package var isClear: Bool {
    scalars { scalar in
      switch scalar {
      case 0xa0, 0x34f, 0x115f...0x1160, 0x1680, 0x17b4...0x17b5, 0x180b...0x180f, 0x2000...0x200a,
        0x202f, 0x205f, 0x2800, 0x3000, 0x3164, 0xfe00...0xfe0f, 0xffa0:
        return false
      case _: return true
      }
    }
  }

  /// Whether people may take one for the other: the same letters in another case, of another width,
  /// or of Greek and Cyrillic where these have the form of a Latin one; 0 and o, 1 and l and i. Of
  /// Unicode's confusables (UTS 39) those that can be typed as a letter or a digit.
  package func looksLike(_ other: Label) -> Bool { form == other.form }

  private var form: [UInt32] {
    var form: [UInt32] = []
    _ = scalars {
      form.append(Label.form(of: $0))
      return true
    }
    return form
  }

  /// False as soon as `visit` is.
  private func scalars(_ visit: (UInt32) -> Bool) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while case .scalarValue(let scalar) = decoder.decode(&iterator) {
      if !visit(scalar.value) { return false }
    }
    return true
  }

  private static func form(of scalar: UInt32) -> UInt32 {
    if (0xff01...0xff5e).contains(scalar) { return form(of: scalar - 0xfee0) }
    if let latin = latin(scalar) { return form(of: latin) }
    switch scalar {
    case 0x30: return 0x6f  // 0: o
    case 0x31, 0x69, 0x49, 0x7c: return 0x6c  // 1, i, I, |: l
    case 0x41...0x5a: return scalar + 0x20
    case _: return scalar
    }
  }

  /// The Latin letter that a Greek or Cyrillic one looks like, if it does.
  private static func latin(_ scalar: UInt32) -> UInt32? {
    let letters: StaticString
    let start: UInt32
    switch scalar {
    case 0x391...0x3a9: (start, letters) = (0x391, "AB..EZH.IK.MN.O.P..TY.X..")
    case 0x3b1...0x3c9: (start, letters) = (0x3b1, "a.....n.ik.u.vo.p..tu....")
    case 0x405...0x408: (start, letters) = (0x405, "SIIJ")
    case 0x410...0x42f: (start, letters) = (0x410, "A.B..E....K.MHO.PCTY.X..........")
    case 0x430...0x44f: (start, letters) = (0x430, "a....e....k.mho.pcty.x..........")
    case 0x455...0x458: (start, letters) = (0x455, "siij")
    case 0x4ae...0x4bb: (start, letters) = (0x4ae, "Yy..........hh")
    case 0x4c0, 0x4cf: return 0x6c
    case 0x501: return 0x64
    case 0x51a...0x51d: (start, letters) = (0x51a, "QqWw")
    case _: return nil
    }
    // SAFETY: each text has a letter for each scalar of its range.
    let letter = unsafe letters.utf8Start[Int(scalar - start)]
    return letter == UInt8(ascii: ".") ? nil : UInt32(letter)
  }
}

extension Sequence<Label> {
  /// The first that is the same as a new name, or looks like it.
  package func first(like name: Label) -> Label? { first { $0.looksLike(name) } }
}
