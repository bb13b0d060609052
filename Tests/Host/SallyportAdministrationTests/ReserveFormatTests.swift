import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `An entry of a reserve` {
  static func entry(_ codes: [String] = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]) throws
    -> ReserveEntry
  {
    let codes = Enrollment(
      id: 0x9f3c_5a7e_1b2d_4f60, user: try #require(UserName(Array("alice".utf8))), uid: nil,
      created: UnixTime(1_772_528_400), authenticators: [],
      backupCodes: try backupCodes(codes, id: 0x5ca1_ab1e_0ddb_a115))
    return ReserveEntry(codes, receipt: [UInt8](0..<32))
  }

  /// As docs/enrollment-format.md has it.
  private static let head = """
    # Kept by sallyportd(8) for when no verifier of the fleet can be asked.
    reserve = 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
    version = 1
    user = alice
    uid = none
    id = 9f3c5a7e1b2d4f60
    created = 1772528400

    [backup_codes]
    id = 5ca1ab1e0ddba115
    salt = 000102030405060708090a0b0c0d0e0f
    code = ce6f4afa1d04b6f762870065812261bf4cf329a56e5e6179a036d238a1e0d37d
    """

  private func lines() throws -> [String] {
    text(try #require(Self.entry().written()))
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  private func read(_ lines: [String]) throws -> ReserveEntry {
    try ReserveEntry.read(secret(lines.joined(separator: "\n")))
  }

  private func problem(_ lines: [String]) throws -> SettingsError? {
    do throws(SettingsError) {
      let whole: Secret
      do { whole = try secret(lines.joined(separator: "\n")) } catch { return nil }
      _ = try ReserveEntry.read(whole)
      return nil
    } catch {
      return error
    }
  }

  @Test func `is written as the documentation says`() throws {
    #expect(try lines().joined(separator: "\n").hasPrefix(Self.head))
  }

  @Test func `is read as it was written`() throws {
    let read = try read(lines())
    let (again, entry) = (read.enrollment, try Self.entry().enrollment)
    #expect(try read.receipt == Self.entry().receipt)
    #expect(again.backupCodes == entry.backupCodes)
    #expect(again.id == entry.id && again.user == entry.user && again.uid == nil)
    #expect(again.authenticators.isEmpty)
  }

  @Test func `is refused by the reader of enrollments, and an enrollment by its own`() throws {
    let reserve = try #require(Self.entry().written())
    #expect(throws: SettingsError(line: 2, .unknownKey)) { _ = try Enrollment.read(reserve) }
    var random = Seeded(7)
    for _ in 0..<100 {
      let other = try #require(random.enrollment().written())
      #expect(throws: SettingsError(line: 2, .missing("reserve"))) {
        _ = try ReserveEntry.read(other)
      }
    }
  }

  // decisive
  // shows: stolen-host
  @Test func `has no authenticator, no scratch code, no uid, and never lacks its codes`() throws {
    var random = Seeded(8)
    for _ in 0..<50 {
      let other = ReserveEntry(try random.enrollment(), receipt: [UInt8](0..<32))
      #expect(other.written() == nil)
    }
    let entry = try Self.entry()
    var codes = entry.enrollment
    codes.backupCodes = try backupCodes(["7KMF2X9QD4TW0HZA"], scratch: ["12345678"])
    #expect(ReserveEntry(codes, receipt: entry.receipt).written() == nil)
    for receipt in [[], [1]] as [[UInt8]] {
      #expect(ReserveEntry(entry.enrollment, receipt: receipt).written() == nil)
    }
  }

  /// What stands in the place of a line, or before the end.
  @Test(
    arguments: [
      (1, "reserve = 00", 2, .value("reserve", wanted: "64 hexadecimal digits")),
      (1, "", 3, .missing("reserve")), (1, "version = 1", 2, .missing("reserve")),
      (2, "reserve = \(String(repeating: "0", count: 64))", 3, .unknownKey),
      (4, "uid = 0", 1, .tooMany("uid, authenticator, pass or scratch_code")),
      (12, "code = 00", 13, .value("code", wanted: "64 hexadecimal digits")),
      (
        13, "scratch_code = \(String(repeating: "0", count: 64))", 1,
        .tooMany("uid, authenticator, pass or scratch_code")
      ),
      (14, "", 9, .missing("[end]")),
    ] as [(Int, String, Int, SettingsError.Problem)])
  func `is refused with its line`(
    _ index: Int, _ line: String, _ number: Int, _ problem: SettingsError.Problem
  ) throws {
    var lines = try lines()
    lines[index] = line
    #expect(try self.problem(lines) == SettingsError(line: number, problem))
  }

  @Test func `is refused cut off anywhere`() throws {
    let whole = bytes(try #require(Self.entry().written()))
    for count in 0..<whole.count - 1 {
      #expect(throws: SettingsError.self) {
        _ = try ReserveEntry.read(secret(whole.prefix(count)))
      }
    }
  }
}
