import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore

extension Fuzzer {
  /// What reads as an entry of a reserve has backup codes and nothing else, is written to a text
  /// that reads to the same, and is no enrollment.
  static let reserve = Fuzzer(name: "reserve") { input in
    let read: ReserveEntry
    do throws(SettingsError) {
      read = try ReserveEntry.read(secret(input))
    } catch {
      must(isPlaced(error, in: input), "no line of the text: \(error)")
      return
    }
    let entry = read.enrollment
    must(entry.authenticators.isEmpty && entry.uid == nil, "more than backup codes")
    let codes = unwrapped(entry.backupCodes, "no backup codes")
    must(codes.scratchDigests.isEmpty && codes.digests.count <= 32, "which codes")
    let text = unwrapped(read.written(), "does not write")
    let back = succeeds("does not read what it wrote") { () throws(SettingsError) in
      try ReserveEntry.read(text)
    }
    let again = back.enrollment
    must(
      again.id == entry.id && again.user == entry.user && back.receipt == read.receipt
        && again.backupCodes == codes, "reads another entry than it wrote")
    must((try? Enrollment.read(text)) == nil, "is an enrollment too")
  }

  /// What reads as a question about a reserve is in its bounds, and is written the same.
  static let reserveQuestion = Fuzzer(name: "reserve-question") { input in
    guard let question = ReserveQuestion.decode(secret(input)) else { return }
    if case .confirm(let entries) = question {
      must(entries.count <= ReserveQuestion.most, "too many")
      for entry in entries {
        must(entry.enrollmentID != 0 && entry.setID != 0 && entry.receipt.count == 32, "an entry")
        must(UserName(entry.name.bytes) == entry.name, "a name")
      }
    }
    must(bytes(unwrapped(question.encoded(), "does not write")) == input, "is written otherwise")
  }

  /// The first byte says to which question the rest answers.
  static let reserveAnswer = Fuzzer(name: "reserve-answer") { input in
    var input = Input(input)
    let count = Int(input.byte())
    let body = input.remaining()
    let name = unwrapped(UserName(Array("alice".utf8)), "a name")
    let entry = ReserveQuestion.Entry(
      name: name, enrollmentID: 1, receipt: [UInt8](repeating: 1, count: 32), setID: 1, used: 0)
    let question: ReserveQuestion =
      switch count {
      case 255: .fetch(name, receipt: nil)
      case 254: .start(HostStart(random: [UInt8](repeating: 1, count: 16), number: 1))
      case _: .confirm([ReserveQuestion.Entry](repeating: entry, count: min(count, 200)))
      }
    guard let answer = ReserveAnswer.decode(body, to: question) else { return }
    must(unwrapped(answer.encoded(), "does not write") == body, "is written otherwise")
    if case .section(let section) = answer {
      must(section.set.salt.count == 16 && section.set.scratchDigests.isEmpty, "the codes")
    }
  }
}
