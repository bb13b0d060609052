import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `An answer of the service` {
  private static func verbs() throws -> [LoginQuestion.Verb] {
    [
      .prepare(mayEnroll: true, after: .password),
      .attempt(try secret("123456"), knownAs: nil, as: .firstPass), .enrolled, .level, .remember,
      .count, .amend(.remove(Label("phone")), to: 1), .rehearse,
      .notices(by: Label("phone"), told: nil),
    ]
  }

  /// Which verbs it answers, by their place in `verbs`.
  private func places(_ answer: ServiceAnswer) -> [Int] {
    switch answer {
    case .prompt(.enrolled, _): [0, 2, 8]
    case .told(let shape, _): shape.isAway ? [] : [8]
    case .prompt, .skip, .enroll: [0]
    case .outcome: [1]
    case .notEnrolled: [2, 8]
    case .level: [3]
    case .done: [4, 6, 7, 8]
    case .count: [5]
    case .changed, .flaw: [6]
    case .trouble, .notServed: [0, 1, 2, 3, 4, 5, 6, 7, 8]
    }
  }

  /// How far a login gets with it; the same number: no further.
  private func favour(_ answer: ServiceAnswer?) -> Int {
    switch answer {
    case nil, .trouble, .notServed, .flaw, .changed: 0
    case .outcome(.refused), .count: 1
    case .prompt(_, let shape), .told(let shape, _): shape.isRemembered ? 2 : 1
    case .enroll(let level): 2 + Int(level.rawValue)
    case .level(let level): 1 + Int(level.rawValue)
    case .skip, .outcome(.accepted), .notEnrolled, .done: 9
    }
  }

  private func frame(_ answer: ServiceAnswer) throws -> [UInt8] {
    try #require(answer.encoded(), "\(answer)")
  }

  private func shape(
    _ names: Int = 1, id: UInt64 = 1, left: Int? = nil, scratch: Bool = false,
    isRemembered: Bool = false
  ) -> Shape {
    let phone = Shape.Authenticator(name: Label("phone"), kind: .totp, digits: .six)
    return Shape(
      enrollmentID: id, authenticators: [Shape.Authenticator](repeating: phone, count: names),
      hasScratchCodes: scratch, backupCodesLeft: left, wait: 0, isRemembered: isRemembered)
  }

  // MARK: there and back

  @Test(arguments: 0..<50)
  func `is read as it was written, for the verbs that it answers and no other`(seed: UInt64) throws
  {
    var random = Seeded(seed)
    for answer in random.answers() {
      for (place, verb) in try Self.verbs().enumerated() {
        let read = ServiceAnswer.decode(try frame(answer), to: verb)
        #expect(read == (places(answer).contains(place) ? answer : nil), "\(answer) to \(verb)")
      }
    }
  }

  @Test func `has the form of version 1`() throws {
    let verbs = try Self.verbs()
    #expect(
      ServiceAnswer.decode([1, 0xa5, 1, 1, 0x78, 0xfe, 0xff, 0xff, 0xff], to: verbs[1])
        == .outcome(.accepted(.authenticator(name: Label("x"), drift: -2))))
    let refused: [UInt8] = [1, 0x5a, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
    let left: [UInt8] = [4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]
    let charge = Charge(enrollmentID: 2, isKnown: false, amount: GuessProbability(units: 3))
    #expect(
      ServiceAnswer.decode(refused + left, to: verbs[1])
        == .outcome(.refused(.response(.wrongCode(charge), left: BudgetLeft(known: 4, other: 5)))))
    let prompt: [UInt8] = [1, 0x96, 0x55, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0x78, 1, 8]
    let authenticator = Shape.Authenticator(name: Label("x"), kind: .hotp, digits: .eight)
    let shape = Shape(
      enrollmentID: 9, authenticators: [authenticator], hasScratchCodes: true, backupCodesLeft: 3,
      wait: nil, isRemembered: true)
    #expect(
      ServiceAnswer.decode(prompt + [1, 3, 1, 0, 0x33], to: verbs[0]) == .prompt(.enrolled, shape))
    let told: [UInt8] = [1, 0x96, 0x0f] + prompt[3...] + [1, 3, 1, 0, 0x55]
    let five: [UInt8] = [5, 0, 0, 0, 0, 0, 0, 0]
    let unremembered = Shape(
      enrollmentID: 9, authenticators: [authenticator], hasScratchCodes: true, backupCodesLeft: 3,
      wait: nil, isRemembered: false)
    #expect(
      ServiceAnswer.decode(told + [2, 1, 3, 0, 2, 0] + five, to: verbs[8])
        == .told(unremembered, [.wrongCodes(3), .added(Label("x"), UnixTime(5))]))
    for none in [[], [0], [1, 2, 1] + five, [1, 0], [1, 7] + five, [15, 1, 3, 0]] as [[UInt8]] {
      #expect(ServiceAnswer.decode(told + none, to: verbs[8]) == nil, "\(none)")
    }
    #expect(ServiceAnswer.decode([1, 0x69], to: verbs[0]) == .skip)
    #expect(ServiceAnswer.decode([1, 0x3c, 0x33], to: verbs[0]) == .enroll(.required))
    #expect(ServiceAnswer.decode([1, 0x33, 0x5a], to: verbs[3]) == .level(.voluntary))
    #expect(ServiceAnswer.decode([1, 0x55, 1, 2, 0, 0], to: verbs[5]) == .count(513))
  }

  @Test func `is told from the word that it begins`() throws {
    let begun = ServiceAnswer.begun()
    #expect(begun == [1, 0xcc] && ServiceAnswer.isBegun(begun))
    for verb in try Self.verbs() { #expect(ServiceAnswer.decode(begun, to: verb) == nil) }
    for other: [UInt8] in [[], [1], [0xcc], [0, 0xcc], [2, 0xcc], [1, 0xcd], [1, 0xcc, 0]] {
      #expect(!ServiceAnswer.isBegun(other), "\(other)")
    }
    let answers: [UInt8] = [
      0x96, 0x69, 0x3c, 0xa5, 0x5a, 0x0f, 0x33, 0x55, 0xc3, 0x66, 0x99, 0xf0, 0xaa,
    ]
    for byte in answers { #expect((byte ^ begun[1]).nonzeroBitCount >= 4) }
  }

  @Test(arguments: [0, 2, 255] as [UInt8])
  func `of another version is none`(version: UInt8) throws {
    for verb in try Self.verbs() {
      #expect(ServiceAnswer.decode([version, 0xaa], to: verb) == nil)
      #expect(ServiceAnswer.decode([1, 0xaa], to: verb) == .notServed)
    }
  }

  // MARK: damage

  @Test func `is nothing when cut off anywhere, and nothing with a byte more`() throws {
    var random = Seeded(1)
    for answer in random.answers() {
      let whole = try frame(answer)
      for verb in try Self.verbs() {
        for count in 0..<whole.count {
          #expect(ServiceAnswer.decode(Array(whole[..<count]), to: verb) == nil)
        }
        #expect(ServiceAnswer.decode(whole + [0], to: verb) == nil)
      }
    }
  }

  @Test func `is nothing where nothing was filled in`() throws {
    for verb in try Self.verbs() {
      for count in 0...600 {
        for byte in [0, 0xff] as [UInt8] {
          let empty = [UInt8](repeating: byte, count: count)
          #expect(ServiceAnswer.decode(empty, to: verb) == nil)
          #expect(ServiceAnswer.decode([1] + empty, to: verb) == nil)
        }
      }
    }
  }

  @Test func `lets a login get no further with any one bit turned`() throws {
    var random = Seeded(2)
    let verbs = try Self.verbs()
    for answer in random.answers() {
      let whole = try frame(answer)
      for verb in places(answer).map({ verbs[$0] }) {
        for bit in 0..<8 * whole.count {
          var other = whole
          other[bit / 8] ^= 1 << UInt8(bit % 8)
          let read = ServiceAnswer.decode(other, to: verb)
          #expect(favour(read) <= favour(answer), "\(answer), bit \(bit): \(read as Any)")
        }
      }
    }
  }

  /// The first byte, and those of a level, of who it is and of what is remembered.
  @Test func `says what lets a login go on four bits away from everything else`() throws {
    let remembered = ServiceAnswer.prompt(.enrolled, shape(isRemembered: true))
    let last = try frame(remembered).count - 1
    let cases: [(ServiceAnswer, Int, Int)] = [
      (.skip, 1, 0), (.enroll(.offer), 1, 0), (.enroll(.offer), 2, 0), (remembered, 1, 0),
      (remembered, 2, 0), (remembered, last, 0), (.level(.voluntary), 2, 3), (.notEnrolled, 1, 2),
      (.outcome(.accepted(.backupCode(left: 1))), 1, 1), (.done, 1, 6),
    ]
    let verbs = try Self.verbs()
    for (answer, offset, place) in cases {
      let whole = try frame(answer)
      #expect((4...8).contains((whole[offset] ^ 0).nonzeroBitCount))
      #expect((4...8).contains((whole[offset] ^ 0xff).nonzeroBitCount))
      for byte in UInt8(0)...255 where (1...3).contains((byte ^ whole[offset]).nonzeroBitCount) {
        var other = whole
        other[offset] = byte
        #expect(ServiceAnswer.decode(other, to: verbs[place]) == nil, "\(answer) \(byte)")
      }
    }
  }

  @Test(arguments: 0..<10)
  func `is written as it was read, whatever was read`(seed: UInt64) throws {
    var random = Seeded(200 + seed)
    var taken = 0
    let frames = try random.answers().map(frame)
    let verbs = try Self.verbs()
    for _ in 0..<10_000 {
      let mutated = random.mutated(frame: random.pick(frames))
      guard let answer = ServiceAnswer.decode(mutated, to: random.pick(verbs)) else { continue }
      taken += 1
      #expect(try frame(answer) == mutated)
    }
    #expect(taken > 100)
  }

  // MARK: bounds

  @Test func `has no shape that no enrollment has`() throws {
    let verb = try Self.verbs()[0]
    let cases: [(Shape, Bool)] = [
      (shape(0), false), (shape(1), true), (shape(8), true), (shape(9), false),
      (shape(id: 0), false), (shape(left: 0), true), (shape(left: 64, scratch: true), true),
      (shape(left: 65), false), (shape(left: 256), false), (shape(left: -1), false),
    ]
    for (shape, isTaken) in cases {
      let answer = ServiceAnswer.prompt(.enrolled, shape)
      let read = answer.encoded().flatMap { ServiceAnswer.decode($0, to: verb) }
      #expect(read == (isTaken ? answer : nil))
    }
    // The name's length and first byte, the kind, the digits, the flags of what follows.
    let whole = try frame(.prompt(.enrolled, shape(left: 3)))
    let offsets: [(Int, UInt8)] = [
      (11, 0), (11, 9), (12, 0), (12, 65), (13, 0x20), (13, 7), (18, 2), (19, 5), (19, 9), (20, 2),
      (21, 65), (22, 2), (23, 2),
    ]
    for (offset, value) in offsets {
      var other = whole
      other[offset] = value
      #expect(ServiceAnswer.decode(other, to: verb) == nil, "\(offset) \(value)")
    }
  }

  @Test func `tells nothing of anybody while the fleet is away`() throws {
    let verb = try Self.verbs()[0]
    let away = ServiceAnswer.prompt(.enrolled, .away(as: 9))
    let whole = try frame(away)
    #expect(ServiceAnswer.decode(whole, to: verb) == away)
    // What an enrollment has, behind the same mark.
    let (front, mark) = (Array(whole.prefix(12)), try #require(whole.last))
    var others = try [shape(), shape(left: 3), shape(8, left: 0, scratch: true)].map {
      try Array(frame(.prompt(.enrolled, $0)).dropLast()) + [mark]
    }
    // Backup codes left, no wait, another wait; no enrollment, no account.
    others.append(front + [1, 3, 0] + whole.dropFirst(13))
    others.append(front + [0, 0, mark])
    others.append(front + [0, 1, 5, 0, 0, 0, 0, 0, 0, 0, mark])
    others.append(try frame(.prompt(.notEnrolled, .away(as: 9))))
    others.append(try frame(.prompt(.unknown, .away(as: 9))))
    for other in others { #expect(ServiceAnswer.decode(other, to: verb) == nil, "\(other)") }
  }

  @Test func `remembers no one who is not enrolled`() throws {
    let verb = try Self.verbs()[0]
    for status in [EnrollmentStatus.notEnrolled, .unknown] {
      let whole = try frame(.prompt(status, shape(isRemembered: true)))
      #expect(ServiceAnswer.decode(whole, to: verb) == nil)
    }
  }

  @Test(arguments: [EnrollmentLevel.refuse, .voluntary])
  func `asks nobody to enroll whom the level does not`(level: EnrollmentLevel) throws {
    let verb = try Self.verbs()[0]
    #expect(ServiceAnswer.decode(try frame(.enroll(level)), to: verb) == nil)
  }

  @Test func `has no outcome that no login has`() throws {
    let verb = try Self.verbs()[1]
    let outcomes: [[UInt8]] = [
      [0xa5, 0, 1, 0x78, 0, 0, 0, 0], [0xa5, 5, 1], [0xa5, 3, 6], [0xa5, 4, 6], [0xa5, 2, 65],
      [0xa5, 1, 0, 0, 0, 0, 0],
      [0x5a, 9], [0x5a, 2, 6] + [UInt8](repeating: 0, count: 16),
    ]
    for outcome in outcomes { #expect(ServiceAnswer.decode([1] + outcome, to: verb) == nil) }
    let dear = Charge(
      enrollmentID: 1, isKnown: true, amount: GuessProbability(units: 100_000_000_001))
    let left = BudgetLeft(known: 0, other: 0)
    let refused = ServiceAnswer.outcome(.refused(.response(.wrongCode(dear), left: left)))
    #expect(ServiceAnswer.decode(try frame(refused), to: verb) == nil)
    #expect(ServiceAnswer.outcome(.accepted(.backupCode(left: 65))).encoded() == nil)
  }

  // MARK: the shape of an enrollment

  @Test func `shows that somebody has changed what is enrolled`() {
    let before = shape(2, left: 5)
    #expect(before.follows(before) && shape(2, left: 4).follows(before))
    #expect(shape().follows(shape()))
    let key = Shape.Authenticator(name: Label("key"), kind: .hotp, digits: .six)
    let phone = before.authenticators[0]
    let others = [[phone, key], [key, phone], [phone]].map {
      Shape(
        enrollmentID: 1, authenticators: $0, hasScratchCodes: false, backupCodesLeft: 5, wait: 0,
        isRemembered: false)
    }
    for other in others + [
      shape(2, left: 6), shape(2), shape(2, id: 2, left: 5), shape(3, left: 5), .away(as: 1),
    ] { #expect(!other.follows(before)) }
    #expect(!before.follows(shape(2)))
  }

  @Test func `has the shape of the enrollment and of what was used`() throws {
    let codes = try backupCodes(
      ["ABCDEFGHJKMNPQRS", "ABCDEFGHJKMNPQRT"], scratch: ["12345678"])
    let enrollment = try enrollment(
      [authenticator(), authenticator(2, "key", parameters(.hotp, .sha1, .eight))],
      backupCodes: codes)
    var state = LoginState(initialFor: enrollment)
    state.backupCodes?.used = 0b101
    let shape = Shape(of: enrollment, state, wait: 60, isRemembered: true)
    #expect(
      shape
        == Shape(
          enrollmentID: 0xe0e0,
          authenticators: [
            Shape.Authenticator(name: Label("phone"), kind: .totp, digits: .six),
            Shape.Authenticator(name: Label("key"), kind: .hotp, digits: .eight),
          ], hasScratchCodes: true, backupCodesLeft: 1, wait: 60, isRemembered: true))
    #expect(shape.factors == enrollment.factors)
    let bare = Shape(
      of: try SallyportCoreTests.enrollment([authenticator()]), state, wait: nil,
      isRemembered: false)
    #expect(bare.backupCodesLeft == nil && !bare.hasScratchCodes && bare.wait == nil)
    #expect(bare.factors.count == 1 && bare.factors.contains(.totp))
  }
}
