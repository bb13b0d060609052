package import SallyportAdministration
package import SallyportSystem

extension Machine {
  /// A word of our own, for machines whose other parts are those of the machine they are copied
  /// from: 32 hexadecimal digits.
  package static let word = "/etc/security/sallyport-machine"

  /// What this machine tells of itself.
  package var mark: MachineMark {
    let files: [MachineMark.Part: String] = [
      .product: "/sys/class/dmi/id/product_uuid", .machine: "/etc/machine-id", .word: Machine.word,
    ]
    return MachineMark(files.compactMapValues { bytes($0, limit: 256).value.map { text(of: $0) } })
  }

  /// By which parts it is another machine than the one that the store was made on; nil where no
  /// part of both is known.
  package func difference(from store: Store) throws(StoreTrouble) -> [MachineMark.Part]? {
    guard let mark = try store.machineMark() else { return nil }
    let own = self.mark
    if Set(mark.parts.keys).isDisjoint(with: own.parts.keys) { return nil }
    return mark.differences(from: own)
  }

  private func text(of bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

extension MachineMark {
  /// What a store of another machine means, for people.
  package static func copyText(_ parts: [Part]) -> String {
    "this store was made on another machine (by its \(parts.map(\.name).joined(separator: ", "))): "
      + "codes used there are good here"
  }
}
