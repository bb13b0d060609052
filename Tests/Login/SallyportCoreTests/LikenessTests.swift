import SallyportCore
import Testing

/// Each text that is one edit away from a name.
func oneEdit(from name: String) -> [String] {
  let letters = Array(name)
  var texts: [String] = []
  for place in letters.indices {
    var text = letters
    text.remove(at: place)
    texts.append(String(text))
    text.insert("x", at: place)
    texts.append(String(text))
    if place > 0 {
      text = letters
      text.swapAt(place - 1, place)
      texts.append(String(text))
    }
  }
  for place in 0...letters.count {
    var text = letters
    text.insert("x", at: place)
    texts.append(String(text))
  }
  return texts.filter { $0 != name }
}

@Suite struct `A text that is nearly a name` {
  @Test(arguments: ["after-key", "demand", "use_first_pass", "nullok", "a", "aa", "state"])
  func `is one with one edit, whatever the edit`(_ name: String) {
    #expect(name.count < 4 || oneEdit(from: name).count > 3 * name.count)
    for text in oneEdit(from: name) + [name] {
      #expect(near(text, name), "\(text)")
    }
  }

  @Test(arguments: [
    ("after_key", "after-key"), ("AFTER-KEY", "after-key"), ("use-first-pass", "use_first_pass"),
    ("Demand", "demand"), ("wrong_pasword", "wrong-password"),
  ]) func `may have other letters and hyphens besides`(_ text: String, _ name: String) {
    #expect(near(text, name))
  }

  @Test(arguments: [
    ("demanded", "demand"), ("deand1", "demand"), ("man", "demand"), ("", "demand"),
    ("edmnad", "demand"), ("afterkeys", "after-key"), ("try_first_pass", "use_first_pass"),
    ("stre/x", "store="), ("sto", "store="), ("nullok", "echo"),
  ]) func `is not one with two`(_ text: String, _ name: String) {
    #expect(!near(text, name))
  }

  @Test(arguments: [
    "store=relative", "stor=/x", "store/x", "sotre=/x", "store", "Store=/x", "sttore=",
  ])
  func `may have a value after an equals sign`(_ text: String) {
    #expect(near(text, "store="))
  }

  /// `isNear` takes a name of the code's own.
  private func near(_ text: String, _ name: String) -> Bool {
    let names: [StaticString] = [
      "after-key", "demand", "wrong-password", "use_first_pass", "nullok", "echo", "a", "aa",
      "state", "store=",
    ]
    guard let known = names.first(where: { "\($0)" == name }) else {
      Issue.record("no name \(name)")
      return false
    }
    return isNear(Array(text.utf8), known, isStart: name.hasSuffix("="))
  }
}
