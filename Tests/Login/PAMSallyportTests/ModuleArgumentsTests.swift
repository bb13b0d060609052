import PAMSallyport
import Testing

/// The words of the module's line in a stack.
@Suite struct `The words of a line` {
  @Test(arguments: [
    "store=", "store=relative", "store=./store", "conf=", "conf=relative", "prompt=", "prompt=\n",
    "prompt=\u{202e}edoc", "prompt=\u{1b}[2J", "STORE=/store", "nullok=1", "nulloc", "",
  ]) func `what is not a word is unknown and changes nothing`(_ word: String) {
    let arguments = ModuleArguments([Array(word.utf8)])
    #expect(arguments.unknown == [Array(word.utf8)])
    #expect(arguments.policyFile == nil && arguments.prompt == nil)
    #expect(arguments.base == ModuleArguments([]).base)
  }

  @Test func `a prompt has at most 64 bytes`() {
    let longest = [UInt8](repeating: UInt8(ascii: "x"), count: 64)
    let word = Array("prompt=".utf8) + longest
    #expect(ModuleArguments([word]).prompt == longest)
    #expect(ModuleArguments([word + longest]).unknown == [word + longest])
  }
}
