import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `The text of a block` {
  private let alice: UserName
  private let carol: UserName

  init() throws {
    alice = try #require(UserName("alice".utf8))
    carol = try #require(UserName("carol".utf8))
  }

  private func block(_ helper: UserName?) -> Block {
    Block(user: alice, uid: 7, until: UnixTime(50), since: UnixTime(9), helper: helper)
  }

  @Test func `names the helper who set it in a line that the version before passes over`() throws {
    for helper in [nil, carol] {
      let text = try #require(block(helper).written())
      #expect(Block.read(text) == block(helper))
      #expect(Block.isOver(text, at: UnixTime(50)) && !Block.isOver(text, at: UnixTime(49)))
    }
    let text = try #require(block(carol).written())
    #expect(text.bytes(in: 0..<text.count).starts(with: "# helper = carol\n# Sallyport".utf8))
  }

  // decisive
  // shows: climb-block
  @Test(arguments: [
    "", "# Sallyport\n# helper = carol\n", "# helper = \n", "#helper = carol\n",
    "# helper = a\tb\n",
    " # helper = carol\n", "# Helper = carol\n", "# helper = ca/rol\n",
  ]) func `is root's where no such line is the first`(_ head: String) throws {
    let lines = "version = 1\nuser = alice\nuid = 7\nuntil = 50\nsince = 9\n"
    #expect(Block.read(try secret(head + lines)) == block(nil))
  }

  @Test func `is not understood where its keys are not as they are written`() throws {
    for text in ["", "# helper = carol", "# helper = carol\nversion = 1\n"] {
      #expect(try Block.read(secret(text)) == nil)
    }
  }
}
