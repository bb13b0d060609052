package import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport

/// An app's plain export, told by its shape.
package struct AppExport: Sendable {
  /// The app's name.
  package let name: String
  package let entries: [AppEntry]

  /// In bytes. What is read is many times as long in memory.
  package static let longest = 16 << 20

  /// Why a file is no export that can be read.
  package enum Failure: Error {
    /// Sealed with a password: by which app, and what to press in it for a plain one.
    case sealed(name: String, press: String)
    case line(LineProblem)
    /// A picture, or pages of some.
    case picture
    /// JSON or XML, but of no app that is known.
    case unknown
    case tooLong
  }

  /// nil for what has not the shape of an export: lines of otpauth URIs, it seems.
  package static func read(_ bytes: Secret) throws(Failure) -> AppExport? {
    let text = SourceText(bytes, skipsMark: true)
    let pictures = [
      [0x89, 0x50, 0x4e, 0x47], [0xff, 0xd8, 0xff], Array("GIF8".utf8), Array("%PDF".utf8),
      Array("RIFF".utf8),
    ]
    if pictures.contains(where: { bytes.bytes(in: 0..<$0.count) == $0 }) { throw .picture }
    for (head, sealed) in SealedExport.heads
    where bytes.bytes(in: 0..<head.count) == head { throw .sealed(sealed) }
    guard let writing = writing(of: text) else {
      // Comments may be in another encoding; control characters no text has.
      let start = bytes.bytes(in: 0..<min(bytes.count, 4096))
      if start.contains(where: { $0 < 0x09 || $0 > 0x0d && $0 < 0x20 }) { throw .sealed(.unknown) }
      return nil
    }
    guard bytes.count <= longest else { throw .tooLong }
    let tree = try tree(text, writing)
    for (path, sealed) in SealedExport.trees {
      switch tree[path] {
      case .text, .flag(true): throw .sealed(sealed)
      case .object, .list, .number, .flag(false), .other, nil: break
      }
    }
    guard let format = AppFormat.all.first(where: { $0.fits(tree, writing) }) else {
      throw .unknown
    }
    return AppExport(name: format.name, entries: format.read(tree))
  }

  private static func writing(of text: SourceText) -> AppFormat.Writing? {
    switch text.firstByte {
    case UInt8(ascii: "{"), UInt8(ascii: "["): .json
    case UInt8(ascii: "<"): .keePassXML
    case _:
      CSVReader.hasColumn("TOTP", text) || CSVReader.hasColumn("login_totp", text) ? .csv : nil
    }
  }

  private static func tree(_ text: SourceText, _ writing: AppFormat.Writing) throws(Failure)
    -> ExportNode
  {
    do throws(LineProblem) {
      switch writing {
      case .json, .protobuf: return try JSONReader.read(text)
      case .csv: return try CSVReader.read(text)
      case .keePassXML: return try KeePassXMLReader.read(text)
      }
    } catch {
      throw .line(error)
    }
  }
}

extension AppExport.Failure {
  fileprivate static func sealed(_ export: SealedExport) -> Self {
    .sealed(name: export.name, press: export.press)
  }
}

extension AppFormat {
  fileprivate func fits(_ tree: ExportNode, _ writing: Writing) -> Bool {
    guard writing == self.writing, let list = tree[entries]?.list else { return false }
    return mark.isEmpty || list.first?[mark] != nil
  }
}
