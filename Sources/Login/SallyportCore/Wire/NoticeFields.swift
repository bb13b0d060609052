import OneTimePassword

// What an owner is told: how many (1 byte), then of each its kind (1) and its values. A new
// authenticator is named by its place in the shape.

extension Shape {
  fileprivate func place(of name: Label) -> Int? {
    authenticators.firstIndex { $0.name == name }
  }
}

extension ByteWriter {
  mutating func put(_ notices: [OwnerNotice], of shape: Shape) {
    if notices.isEmpty { fail() }
    put(count: notices.count, atMost: OwnerNotice.mostTold)
    for notice in notices {
      switch notice {
      case .wrongCodes(let count):
        put(count: 1)
        put(UInt64(count), bytes: 2)
      case .added(let name, let time):
        put(count: 2)
        guard let place = shape.place(of: name) else { return fail() }
        put(count: place)
        put(time)
      case .passGiven(let time):
        put(count: 3)
        put(time)
      case .passUsed(let time, let origin):
        put(count: origin == nil ? 4 : 5)
        put(time)
        if let origin {
          put(origin.high)
          put(origin.low)
        }
      case .restored(let time):
        put(count: 6)
        put(time)
      }
    }
  }
}

extension ByteReader {
  mutating func notices(of shape: Shape) -> [OwnerNotice] {
    let count = count(atMost: OwnerNotice.mostTold)
    if count == 0 { fail() }
    var notices: [OwnerNotice] = []
    for _ in 0..<count {
      if let notice = notice(of: shape) { notices.append(notice) } else { fail() }
    }
    return notices
  }

  private mutating func notice(of shape: Shape) -> OwnerNotice? {
    switch self.count(atMost: 6) {
    case 1: return .wrongCodes(UInt16(truncatingIfNeeded: number(bytes: 2)))
    case 2:
      let place = self.count(atMost: Enrollment.maximumAuthenticators)
      guard place < shape.authenticators.count else { return nil }
      let name = shape.authenticators[place].name
      return shape.place(of: name) == place ? .added(name, time()) : nil
    case 3: return .passGiven(time())
    case 4: return .passUsed(time(), from: nil)
    case 5:
      let (time, high, low) = (time(), number64(), number64())
      let origin = NetworkAddress(high: high, low: low)
      return origin.low == low ? .passUsed(time, from: origin) : nil
    case 6: return .restored(time())
    case _: return nil
    }
  }
}
