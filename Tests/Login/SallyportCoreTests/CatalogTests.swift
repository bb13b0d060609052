import Foundation
import OneTimePassword
import TestSupport
import Testing

@testable import SallyportCore

@Suite struct `A catalog of sentences` {
  private static let english = String(describing: Sentence.english)

  private static func read(_ bytes: some Collection<UInt8>) throws -> Sentences {
    let text = try #require(Secret(bytes))
    var lines = try SettingsScanner(text)
    return try Sentences(catalog: text, &lines)
  }

  /// The line of the first mistake; nil where there is none.
  private static func mistake(_ text: String) throws -> Int? {
    do {
      _ = try read(text.utf8)
      return nil
    } catch let error as SettingsError {
      return error.line
    }
  }

  @Test func `says what English says where it has the lines of English`() throws {
    let read = try Self.read(("# Comment\n\n" + Self.english + "\n[later]\n???\n").utf8)
    for sentence in Sentence.allCases {
      let (one, other) = (Array("one".utf8), Array("other".utf8))
      #expect(read.text(sentence, one, other) == Sentences().text(sentence, one, other))
    }
  }

  @Test func `has its places in any order`() throws {
    let text = Self.english.replacingOccurrences(
      of: "a pass was used {ago} from {address}", with: "from {address} came a pass {ago}")
    let line = try Self.read(text.utf8).text(.passUsedFrom, Array("now".utf8), Array("::1".utf8))
    #expect(String(decoding: line, as: UTF8.self) == "from ::1 came a pass now")
  }

  @Test func `is of no use without any one of its keys`() throws {
    let lines = Self.english.split(separator: "\n").map(String.init)
    for place in lines.indices {
      var (less, twice, other) = (lines, lines, lines)
      less.remove(at: place)
      twice.insert(lines[place], at: place)
      other[place] = "x" + other[place]
      for wrong in [less, twice, other] {
        let line = try #require(try Self.mistake(wrong.joined(separator: "\n")))
        #expect((place...place + 2).contains(line))
      }
    }
  }

  @Test(arguments: [
    "{count} tries left {count}", "tries left", "{counts} tries", "{count tries", "{} tries",
    "{count} {host} tries", "{count} tries\\", "{count}\\t", "", "{count} \u{202e}tries",
    "{count} \u{7}tries", "{count} \u{200b}", "{count}" + String(repeating: "x", count: 494),
  ])
  func `is of no use with a sentence that is none`(_ sentence: String) throws {
    let line = "tries_left = {count} tries left."
    let number = Self.english.split(separator: "\n").firstIndex { $0 == line }.map { $0 + 1 }
    let text = Self.english.replacingOccurrences(of: line, with: "tries_left = \(sentence)")
    #expect(try number != nil && Self.mistake(text) == number)
    let right = text.replacingOccurrences(of: sentence.isEmpty ? "= \n" : sentence, with: "{count}")
    if !sentence.isEmpty { #expect(try Self.mistake(right) == nil) }
  }

  @Test func `is of no use with bytes that are no text`() throws {
    let bytes = Array(Self.english.utf8)
    for place in stride(from: 8, to: bytes.count, by: 97) where bytes[place] != 0x0a {
      var wrong = bytes
      wrong[place] = 0xff
      #expect(throws: SettingsError.self) { try Self.read(wrong) }
    }
    #expect(throws: SettingsError.self) { try Self.read([]) }
  }

  /// The ones that are installed.
  @Test(arguments: ["de", "es", "fr", "it", "ja", "pl", "pt", "zh"])
  func `is whole in each language that comes with the module`(_ name: String) throws {
    let read = try Self.read(try textOfSources("pam/messages/\(name)").utf8)
    let (yes, no) = (try #require(read.text(.yes).first), try #require(read.text(.no).first))
    #expect(yes != no && (0x61...0x7a).contains(yes) && (0x61...0x7a).contains(no))
    for question in [Sentence.setUpNow, .setUpNowOrLater] {
      let letters = String(decoding: [0x5b, yes, 0x2f, no], as: UTF8.self)
      #expect(String(decoding: read.text(question), as: UTF8.self).contains(letters))
    }
    // What all are told who are refused is one sentence.
    for sentence in [Sentence.notAccepted, .backupCode, .passwordAndBackupCode] {
      #expect(read.text(sentence) == read.text(sentence, [0x78], [0x78]))
    }
  }
}
