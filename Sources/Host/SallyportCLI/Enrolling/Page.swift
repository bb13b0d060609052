import SallyportCore

extension Sheet {
  /// An A4 page to print, as SVG 1.1. One unit is a millimeter.
  func page() -> String {
    var page = Page()
    page.line(heading, at: 25, size: 7)
    if let matrix = matrix() {
      page.line(Sheet.scan, at: 36)
      page.code(matrix, at: 40, side: 80)
    }
    var place = 128
    for line in key + wrapped(uri, width: 88) {
      page.line(line, at: place, size: 3, isFixed: true)
      place += 5
    }
    if !codes.shown.isEmpty {
      place += 6
      page.line(FreshBackupCodes.heading, at: place)
      for line in columns(ofBackupCodes: codes.shown) {
        place += 6
        page.line(line, at: place, isFixed: true)
      }
    }
    page.line([day, Sheet.care].compactMap { $0 }.joined(separator: " "), at: 285, size: 3)
    return page.written
  }

  /// Breaks a text without spaces into lines of at most `width` characters.
  private func wrapped(_ text: String, width: Int) -> [String] {
    let scalars = Array(text.unicodeScalars)
    return stride(from: 0, to: scalars.count, by: width).map { start in
      var line = String.UnicodeScalarView()
      line.append(contentsOf: scalars[start..<min(start + width, scalars.count)])
      return String(line)
    }
  }
}

/// Builds an SVG document.
private struct Page {
  private var lines = [
    #"<?xml version="1.0" encoding="UTF-8"?>"#,
    #"<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="210mm" height="297mm""#
      + #" viewBox="0 0 210 297">"#,
    #"<rect width="210" height="297" fill="white"/>"#,
  ]

  var written: String { (lines + ["</svg>", ""]).joined(separator: "\n") }

  /// Adds one line of text, with its baseline `place` below the upper edge.
  mutating func line(_ text: String, at place: Int, size: Int = 4, isFixed: Bool = false) {
    let family = isFixed ? "monospace" : "sans-serif"
    lines.append(
      #"<text x="20" y="\#(place)" font-family="\#(family)" font-size="\#(size)""#
        + #" xml:space="preserve">\#(Page.escaped(text))</text>"#)
  }

  /// Adds the QR code, `side` wide including the quiet zone of four modules that ISO/IEC 18004
  /// requires.
  mutating func code(_ matrix: QRMatrix, at place: Int, side: Int) {
    let zone = 4
    var path = ""
    for row in 0..<matrix.size {
      for column in 0..<matrix.size where matrix[row, column] {
        path += "M\(column + zone) \(row + zone)h1v1h-1z"
      }
    }
    let modules = matrix.size + 2 * zone
    lines.append(
      #"<svg x="20" y="\#(place)" width="\#(side)" height="\#(side)""#
        + #" viewBox="0 0 \#(modules) \#(modules)">"#
        + #"<path shape-rendering="crispEdges" d="\#(path)"/></svg>"#)
  }

  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case _: String(Character(scalar))
      }
    }.joined()
  }
}
