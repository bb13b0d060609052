package import SallyportCore

/// The path of a user's file, with the placeholders of pam_google_authenticator's `secret=`.
package struct HomePath {
  private let template: String

  package init(_ template: String) { self.template = template }

  /// Whether the path depends on the user's home.
  package var needsHome: Bool {
    template.hasPrefix("~") || template.utf8Contains("${HOME}") || template.utf8Contains("%h")
  }

  package func path(for user: UserName, home: String) -> String {
    let name = String(decoding: user.bytes, as: UTF8.self)
    var rest = template[...]
    var path = ""
    if rest.hasPrefix("~") {
      path = home
      rest = rest.dropFirst()
    }
    let words = [("${HOME}", home), ("%h", home), ("${USER}", name), ("%u", name)]
    while let character = rest.first {
      if let (word, value) = words.first(where: { rest.hasPrefix($0.0) }) {
        path += value
        rest = rest.dropFirst(word.count)
      } else {
        path.append(character)
        rest = rest.dropFirst()
      }
    }
    return path
  }
}

extension String {
  fileprivate func utf8Contains(_ part: String) -> Bool {
    indices.contains { self[$0...].hasPrefix(part) }
  }
}
