import Foundation
package import OneTimePassword

/// What a test has asked for cannot be made.
package struct NotMade: Error {}

package func secret(_ bytes: some Collection<UInt8>) throws -> Secret {
  guard let secret = Secret(bytes) else { throw NotMade() }
  return secret
}

package func secret(_ text: String) throws -> Secret { try secret(Array(text.utf8)) }

package func bytes(_ secret: Secret) -> [UInt8] { secret.bytes(in: 0..<secret.count) }

package func text(_ secret: Secret) -> String { String(decoding: bytes(secret), as: UTF8.self) }

/// This number of bytes of the secret of the RFCs' examples: the digits from 1 on, again and again.
package func example(_ count: Int) throws -> Secret {
  try secret((0..<count).map { UInt8(ascii: "0") + UInt8(($0 + 1) % 10) })
}

/// The text of a file of the sources, by its path in them.
package func textOfSources(_ path: String) throws -> String {
  try String(contentsOfFile: pathInSources(path), encoding: .utf8)
}

/// The whole path of a file of the sources, by its path in them.
package func pathInSources(_ path: String) -> String {
  #filePath.dropLast("Tests/TestSupport/Values.swift".count) + path
}

/// The lines of a file in Tests/Vectors without its comments.
package func vectorLines(_ name: String) throws -> [String] {
  try textOfSources("Tests/Vectors/" + name)
    .split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
}
