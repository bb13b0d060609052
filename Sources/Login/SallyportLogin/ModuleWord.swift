import OneTimePassword
import SallyportCore

/// The words of the module's line in /etc/pam.d. Those first that keep people out, or say by which
/// files: a line with one of them misspelt refuses everybody.
package enum ModuleWord: UInt8, CaseIterable, Sendable {
  case afterKey, demand, wrongPassword, useFirstPass
  case store, conf
  case prompt
  case tryFirstPass, forwardPass, nullOK, enroll, echo, noDelay, debug

  package var name: StaticString {
    switch self {
    case .afterKey: "after-key"
    case .demand: "demand"
    case .wrongPassword: "wrong-password"
    case .useFirstPass: "use_first_pass"
    case .store: "store="
    case .conf: "conf="
    case .prompt: "prompt="
    case .tryFirstPass: "try_first_pass"
    case .forwardPass: "forward_pass"
    case .nullOK: "nullok"
    case .enroll: "enroll"
    case .echo: "echo"
    case .noDelay: "nodelay"
    case .debug: "debug"
    }
  }

  package var hasValue: Bool { rawValue > 3 && rawValue < 7 }

  /// Whether the line refuses everybody where this word is meant and another stands there.
  package var isNarrowing: Bool { rawValue < 6 }

  /// The word itself, with no value.
  package init?(_ word: [UInt8]) { self.init(word, isNearly: false) }

  /// The word that an unknown one was meant to be: one edit away, at most. After one with a value,
  /// or that keeps people out, anything may follow.
  package init?(meantBy word: [UInt8]) { self.init(word, isNearly: true) }

  @inline(never) private init?(_ text: [UInt8], isNearly: Bool) {
    var number: UInt8 = 0
    while let word = ModuleWord(rawValue: number) {
      if isNearly
        ? isNear(text, word.name, isStart: word.hasValue || word.isNarrowing)
        : !word.hasValue && same(word.name, text)
      {
        self = word
        return
      }
      number += 1
    }
    return nil
  }
}
