import SallyportLogin
import SallyportSupport
import SallyportSystem

/// The unit of systemd that runs the PAM of a service, where it is one of its own, and whether a
/// code that is accepted there can be saved: by itself, or by sallyportd, which the module asks
/// where only its own process may not write the usual store.
package struct ServiceUnit: Equatable {
  package let name: String
  /// The unit's file.
  package let path: String
  /// A sandbox keeps the store read-only for it, and sallyportd is not there.
  package let isShut: Bool
  /// Opens it, as root, and changes nothing else.
  package let opening: String

  /// Since polkit 127 its helper is started by a socket, as root with `ProtectSystem=strict`.
  private static let units = ["polkit-1": "polkit-agent-helper@.service"]
  /// The first directory that has the file counts; drop-ins of all of them, by name.
  private static let directories = [
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system", "/lib/systemd/system",
  ]

  /// nil: the service has no unit here. `store`: its directory.
  package init?(of service: String, store: String, on machine: Machine) {
    guard let name = ServiceUnit.units[service] else { return nil }
    let files = ServiceUnit.directories.map { "\($0)/\(name)" }
    guard let path = files.first(where: { machine.file($0).value != nil }) else { return nil }
    var names: Set<String> = []
    let dropIns = files.flatMap { machine.paths("\($0).d/*.conf") }.filter { path in
      names.insert(String(path.split(separator: "/").last ?? "")).inserted
    }
    let order = dropIns.sorted {
      ($0.split(separator: "/").last ?? "") < ($1.split(separator: "/").last ?? "")
    }
    let lines = ([path] + order).flatMap { linesOf(machine.text($0).value ?? "") }
    let isUsual = store == Store.usualRoot
    let isServed = isUsual && ServiceSocket.isThere(machine.root + ServiceAuthority.rootSocket)
    let socket = "sallyport-root.socket"
    let mayBeServed =
      isUsual
      && ServiceUnit.directories.contains { machine.file("\($0)/\(socket)").value != nil }
    (self.name, self.path) = (name, path)
    isShut = !isServed && ServiceUnit.isShut(lines, to: store)
    opening =
      mayBeServed
      ? "systemctl enable --now \(socket)" : ServiceUnit.dropIn(opening: store, to: name)
  }

  private static func isShut(_ lines: [Substring], to store: String) -> Bool {
    var (isStrict, writable): (Bool, [String]) = (false, [])
    for line in lines {
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      let words = parts[1].split { $0 == " " || $0 == "\t" }.map(String.init)
      switch parts[0].filter({ $0 != " " && $0 != "\t" }) {
      case "ProtectSystem": isStrict = words == ["strict"]
      case "ReadWritePaths" where words.isEmpty: writable = []
      case "ReadWritePaths":
        writable += words.map { String($0.drop { $0 == "-" || $0 == "+" || $0 == "\"" }) }
      case _: break
      }
    }
    return isStrict
      && !writable.contains { path in
        let path = path.filter { $0 != "\"" }
        return path == "/" || store == path
          || store.hasPrefix(path.hasSuffix("/") ? path : path + "/")
      }
  }

  private static func dropIn(opening store: String, to unit: String) -> String {
    let directory = "/etc/systemd/system/\(unit).d"
    return
      "mkdir -p \(directory) && printf '[Service]\\nReadWritePaths=-%s\\n' \(shellQuoted(store)) "
      + "> \(directory)/sallyport.conf && systemctl daemon-reload"
  }

  package var words: String { "\(name) may not write the store: right codes are refused, too" }
}
