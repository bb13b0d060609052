/// Finds the known word that an unknown one was probably meant to be.
package enum Likeness {
  /// The word nearest to `word`, if it is at most two edits away (one for words of three to five
  /// letters). Of equally near words, the first.
  package static func nearest(to word: String, among words: [String]) -> String? {
    let typed = word.lowercased()
    let most = min(2, typed.count / 3)
    let near = words.map { (word: $0, slips: slips(between: typed, and: $0.lowercased())) }
    return near.filter { $0.slips <= most }.min { $0.slips < $1.slips }?.word
  }

  /// The smallest number of letters to insert, delete, replace or swap with their neighbour: the
  /// Damerau–Levenshtein distance, in which no letter is edited twice.
  package static func slips(between first: String, and second: String) -> Int {
    let (a, b) = (Array(first.unicodeScalars), Array(second.unicodeScalars))
    guard max(a.count, b.count) <= 64 else { return Int.max }
    var rows = [Array(0...b.count)]
    for i in 0..<a.count {
      var row = [i + 1]
      for j in 0..<b.count {
        var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }

  /// As `nearest`, for PAM services, which are often not named after their programs.
  package static func service(_ name: String, among known: [String]) -> String? {
    let usual = ["ssh": "sshd", "openssh": "sshd", "console": "login", "gdm": "gdm-password"]
    if let meant = usual[name.lowercased()], known.contains(meant) { return meant }
    return nearest(to: name, among: known)
  }
}
