/// The fields of a login state alone, for a store that numbers and seals it in its own way; the
/// same as those of a `StateRecord` (docs/enrollment-format.md).
extension LoginState {
  /// nil for a state that could not be read again.
  package func written() -> [UInt8]? {
    guard authenticators.count <= Enrollment.maximumAuthenticators,
      origins.count <= LoginState.readableOrigins, remembered.count <= LoginState.maximumRemembered,
      passes.count <= Pass.maximumOpen
    else { return nil }
    var fields = ByteWriter(count: StateRecord.slotSize)
    fields.put(self)
    return fields.isWhole ? [UInt8](fields.bytes.prefix(fields.position)) : nil
  }

  /// Total: any bytes give a state that `written` gives, or nil.
  package static func read(_ bytes: [UInt8]) -> LoginState? {
    var fields = ByteReader(bytes, 0..<bytes.count)
    let state = fields.loginState()
    return fields.isWhole && fields.isAtEnd ? state : nil
  }
}
