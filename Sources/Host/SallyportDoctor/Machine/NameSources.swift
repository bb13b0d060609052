/// Where a database of the name service comes from, by nsswitch.conf(5).
package struct NameSources: Equatable {
  /// In their order, without actions such as `[NOTFOUND=return]`; nil if the file cannot be read.
  let sources: [String]?

  /// Whether all of it is in files of this machine, so that what is not found is not there.
  package var areFiles: Bool { sources?.allSatisfy { $0 == "files" } == true }

  /// Those that are neither files nor made up of what this machine knows by itself; nil if the file
  /// cannot be read.
  var directoryNames: [String]? {
    let local = ["files", "compat", "systemd", "db", "mymachines", "altfiles", "extrausers"]
    return sources?.filter { !local.contains($0) }
  }

  var directories: Int? { directoryNames?.count }

  /// Whether no directory of the network is asked. False if the file cannot be read.
  package var areLocal: Bool { directories == 0 }

  /// `passwd` or `group`.
  package init(of database: String, on machine: Machine) {
    switch machine.text("/etc/nsswitch.conf") {
    case .seen(let text): sources = NameSources.sources(of: database, in: text)
    case .absent: sources = ["files"]
    case .unseen: sources = nil
    }
  }

  /// As the C library reads it: the last line of a database counts, and `files` without one.
  static func sources(of database: String, in text: String) -> [String] {
    let lines = linesOf(text).compactMap { whole -> Substring? in
      let line = whole.prefix { $0 != "#" }.drop { isBlank($0) }
      let name = line.prefix { !isBlank($0) && $0 != ":" }
      return name == database && name.endIndex < line.endIndex
        ? line[name.endIndex...].dropFirst() : nil
    }
    guard let line = lines.last else { return ["files"] }
    var isAction = false
    let words = line.map { character -> Character in
      if character == "[" { isAction = true }
      defer { if character == "]" { isAction = false } }
      return isAction || character == "]" || isBlank(character) ? " " : character
    }
    return String(words).split(separator: " ").map(String.init)
  }

  private static func isBlank(_ character: Character) -> Bool {
    character == " " || character == "\t" || character == "\r"
  }
}

/// Whether SSSD, by its settings, answers for which users it asked for all groups: pam_sallyport
/// asks it.
enum SSSDSettings {
  static let attribute = "initgrExpireTimestamp"

  /// False where no file says so, or none can be read.
  static func tellsOfGroups(on machine: Machine) -> Bool {
    let files = ["/etc/sssd/sssd.conf"] + machine.paths("/etc/sssd/conf.d/*.conf")
    return files.contains { file in
      linesOf(machine.text(file).value ?? "").contains { line in
        let words = line.split { " \t=,+".contains($0) }
        return words.first == "user_attributes" && words.contains { $0 == attribute }
      }
    }
  }
}
