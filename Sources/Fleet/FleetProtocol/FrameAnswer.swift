import OneTimePassword
package import SallyportCore

/// What a verifier answers.
package protocol FrameAnswer: FrameBody {}

extension HelpAnswer: FrameAnswer {}

extension FrameAnswer {
  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> [UInt8]? { frame.map { $0.bytes(in: 0..<$0.count) } }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> Self? { Secret(frame).flatMap { read($0) } }
}

extension Fields {
  mutating func address(_ value: [UInt8]?) -> [UInt8] {
    let address = counted(value)
    if !isAddressText(address) { fail() }
    return address
  }

  mutating func host(_ value: FleetHostName?) -> FleetHostName? {
    valid(FleetHostName(counted(value?.bytes)))
  }
}
