/// A command as sudoers names it: a path, a directory or a pattern, and arguments.
struct SudoersPath {
  private let path: String
  /// nil: any.
  private let arguments: String?

  init(_ text: String) {
    let words = SudoersLine.parts(text, hasQuotes: false, at: \.isWhitespace)
    path = SudoersPath.merged(words.first ?? "")
    arguments = words.count > 1 ? words.dropFirst().joined(separator: " ") : nil
  }

  /// Whether it also means the command that another line names: all that one means, as far as that
  /// can be told.
  func includes(_ text: String) -> Bool {
    let other = SudoersPath(SudoersPath.withoutChecksum(text))
    guard other.path.hasPrefix("/") else { return false }
    let isDirectory = path.hasSuffix("/")
    let isSamePath =
      path == other.path
      || isDirectory && other.path.hasPrefix(path)
        && !other.path.dropFirst(path.count).contains("/")
      || !isDirectory && matchesPattern(path, other.path, isPath: true)
    return isSamePath && includesArguments(of: other)
  }

  private static func withoutChecksum(_ text: String) -> String {
    guard text.hasPrefix("sha") else { return text }
    return text.split(separator: " ").drop { !$0.hasPrefix("/") }.joined(separator: " ")
  }

  private func includesArguments(of other: SudoersPath) -> Bool {
    guard let arguments else { return true }
    guard let text = other.arguments else { return arguments == "*" }
    return arguments == text || matchesPattern(arguments, text == "\"\"" ? "" : text)
  }

  /// `/bin` and `/sbin` are links to those of `/usr`.
  private static func merged(_ path: String) -> String {
    ["/bin/", "/sbin/"].contains { path.hasPrefix($0) } ? "/usr" + path : path
  }
}
