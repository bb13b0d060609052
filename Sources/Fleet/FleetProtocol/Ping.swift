package import OneTimePassword

/// The bodies of a ping and its answer (docs/fleet-format.md). In a ping a host shows the mark that
/// a verifier gave it last, and is given the next one. A host, or a verifier, of the former version
/// says nothing.
package enum Ping {
  /// Bytes of a mark.
  package static let longestMark = 255
  private static let form: UInt8 = 1

  /// `mark`: empty for none.
  package static func question(showing mark: [UInt8]) -> Secret? { Secret([form] + mark) }

  /// The mark in a ping; nil: it shows none, and takes none.
  package static func mark(in question: Secret) -> [UInt8]? {
    mark(in: question.bytes(in: 0..<question.count))
  }

  /// `next`: empty where none can be given; nil: what was shown cannot be checked now, or says that
  /// the database went back.
  package static func answer(_ next: [UInt8]?) -> [UInt8] { next.map { [form] + $0 } ?? [0] }

  /// Whether no login is to be asked after this answer.
  package static func isRefusal(_ answer: [UInt8]) -> Bool { answer == [0] }

  /// nil: there is none.
  package static func next(in answer: [UInt8]) -> [UInt8]? {
    mark(in: answer).flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func mark(in body: [UInt8]) -> [UInt8]? {
    guard body.first == form, body.count <= 1 + longestMark else { return nil }
    return Array(body.dropFirst())
  }
}
