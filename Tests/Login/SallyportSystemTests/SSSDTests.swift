import CSystem
import Glibc
import Testing

/// What is made of SSSD's answers; the real one's are met in ring 4.
@Suite struct `Answers of SSSD` {
  private typealias Attributes = (text: String, said: Int32)

  /// The words that stand before the texts, and the texts with their ends.
  private static func answer(_ words: [UInt32], _ texts: String = "") -> [UInt32] {
    var bytes = Array(texts.utf8)
    while bytes.count % 4 != 0 { bytes.append(0) }
    return words
      + stride(from: 0, to: bytes.count, by: 4).map { at in
        (0..<4).reduce(0) { $0 | UInt32(bytes[at + $1]) << UInt32(8 * $1) }
      }
  }

  /// `|` stands for the NUL.
  private static let told: [Attributes] = [
    ("initgrExpireTimestamp|1795666058|", 1),
    ("originalDN|uid=a|initgrExpireTimestamp|1795666058|", 1),
    ("initgrExpireTimestamp|0|", -EAGAIN),
    ("initgrExpireTimestamp|1|", -EAGAIN), ("initgrExpireTimestamp||", -EAGAIN),
    ("originalDN|initgrExpireTimestamp|", -EAGAIN),
    ("x|initgrExpireTimestamp|1795666058|", -EAGAIN),
    ("initgrExpireTimestamp|", -EAGAIN), ("", -EAGAIN),
  ]

  @Test(arguments: told)
  private func `it has asked for all groups only where it says when they expire`(
    _ text: String, _ said: Int32
  ) {
    for (kind, wanted): (UInt32, Int32) in [(1, said), (2, -EAGAIN)] {
      let answer = Self.answer([1, 0, kind], text.replacing("|", with: "\0"))
      let size = Int64(12 + text.utf8.count)
      // SAFETY: the answer lives for the call, and a NUL follows its end as it does in the real
      // one.
      #expect(unsafe sys_sssd_has_asked(answer + [0], size) == wanted, "\(kind) \(text)")
    }
    // SAFETY: as above.
    #expect(unsafe sys_sssd_has_asked([0, 0], 8) == -ENOENT)
    // SAFETY: nothing is read of an answer that is none.
    #expect(unsafe sys_sssd_has_asked([], 0) == -EAGAIN)
  }

  @Test func `a group counts only where it stands in a list that is whole`() {
    let lists: [(words: [UInt32], size: Int64, wanted: Int32)] = [
      ([2, 0, 5, 7], 16, 1), ([2, 0, 7, 5], 16, 1), ([1, 0, 5], 12, 0), ([0, 0, 7], 12, 0),
      ([0, 0], 8, 0), ([3, 0, 5, 7], 16, -EPROTO),
      ([UInt32.max, 0, 7], 12, -EPROTO), ([], 0, -EPROTO), ([1], -1, -EPROTO),
    ]
    for list in lists {
      // SAFETY: as many words as the size says live for the call.
      let found = unsafe sys_sssd_find(list.words, list.size, 7)
      #expect(found == list.wanted, "\(list.words)")
    }
  }

  /// What stands in the socket when SSSD is asked, and how many bytes of an answer that is.
  private static let replies: [(words: [UInt32], size: Int64)] = [
    ([24, 0x26, 0, 0, 9, 9], 8), ([16, 0x26, 0, 0], 0), ([24, 0x26, 5, 0, 9, 9], 0),
    ([24, 0x27, 0, 0, 9, 9], -1), ([28, 0x26, 0, 0, 9, 9], -1), ([12, 0x26, 0, 0], -1),
    ([UInt32.max, 0x26, 0, 0], -1), ([24, 0x26, 0], -1), ([], -1),
  ]

  @Test func `an answer that is cut, too long or to something else is none`() throws {
    for reply in Self.replies {
      var ends: [Int32] = [-1, -1]
      // SAFETY: there is room for both ends.
      try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
      defer { close(ends[0]) }
      // SAFETY: as many bytes as the array has.
      _ = unsafe reply.words.withUnsafeBytes { unsafe write(ends[1], $0.baseAddress, $0.count) }
      shutdown(ends[1], Int32(SHUT_WR))
      defer { close(ends[1]) }
      var answer: UnsafeMutablePointer<UInt32>?
      // SAFETY: three bytes of the text; the answer is freed once.
      #expect(unsafe sys_sssd_ask(ends[0], 0x26, "ab", 3, &answer) == reply.size, "\(reply)")
      unsafe free(answer)
    }
  }

  @Test func `a name that is longer than SSSD's own is not asked`() {
    var answer: UnsafeMutablePointer<UInt32>?
    // SAFETY: as many bytes as the array has.
    #expect(unsafe sys_sssd_ask(-1, 0x26, [UInt8](repeating: 97, count: 257), 257, &answer) == -1)
  }
}
