import CService
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

private func bytes(_ secret: Secret) -> [UInt8] { secret.bytes(in: 0..<secret.count) }

// decisive
@Suite struct `A host whose relay lies` {
  // shows: sealed
  @Test func `is answered by an honest one, which sees no kind and no text`() throws {
    let sealed = try Sealed()
    for kind in FrameKind.allCases where kind != .join {
      let answer = try sealed.ask(kind)
      #expect(answer.answers(kind) && answer.body == sealed.typed)
    }
    #expect(sealed.verifier.server.connections == 1)
    let seen = sealed.relay.asked.withLock { $0 } + sealed.relay.answered.withLock { $0 }
    #expect(Set(seen.map(\.kind)) == [0x07, 0x87])
    #expect(Set(seen.map(\.body)).count == seen.count)
    for one in seen { #expect(!one.body.contains(sealed.typed)) }
    #expect(sealed.seals.state.withLock { $0.opened.allSatisfy { !$0 } })
  }

  // shows: sealed
  @Test func `asks nothing that it changes`() throws {
    let sealed = try Sealed()
    _ = try sealed.ask()
    let count = sealed.relay.asked.withLock { $0[0].body.count }
    for bit in 0..<count * 8 where bit % 7 == 0 {
      sealed.lie { $0.up = { [$0.flipped(bit)] } }
      #expect(sealed.fault() == .unknown, "bit \(bit)")
    }
    for kind: UInt8 in [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x09, 0x87, 0xff] {
      sealed.lie {
        $0.up = { sent in
          var sent = sent
          sent.kind = kind
          return [sent]
        }
      }
      #expect(sealed.fault() == .unknown, "kind \(kind)")
    }
    // Who joins is nobody's host: what he asks is no secret's.
    #expect(sealed.verifier.asked.withLock { $0.dropFirst().allSatisfy { $0 == .join } })
  }

  // shows: sealed
  @Test func `believes no answer that it changes, makes or repeats`() throws {
    let sealed = try Sealed()
    _ = try sealed.ask()
    let old = try #require(sealed.relay.answered.withLock { $0.first })
    for bit in 0..<old.body.count * 8 where bit % 7 == 0 {
      sealed.lie { $0.down = { $0.map { $0.flipped(bit) } } }
      #expect(sealed.fault() == .unknown, "bit \(bit)")
    }
    let made: [(UInt8, [UInt8])] = [
      (0x87, old.body), (0x87, []), (0x81, sealed.typed), (0xec, []), (0xed, []), (0xee, []),
      (0xef, []),
    ]
    for (kind, body) in made {
      sealed.lie { script in
        script.down = { $0.map { LyingRelay.Sent(nonce: $0.nonce, kind: kind, body: body) } }
      }
      #expect(sealed.fault() == .unknown, "kind \(kind)")
    }
    // Its own question comes back.
    sealed.lie { [asked = sealed.relay.asked] script in
      script.down = { answers in
        let body = asked.withLock { $0.last?.body ?? [] }
        return answers.map { LyingRelay.Sent(nonce: $0.nonce, kind: 0x87, body: body) }
      }
    }
    #expect(sealed.fault() == .unknown)
    sealed.lie { _ in }
    #expect(sealed.fault() == nil)
  }

  /// Two questions at once, each of which goes up the line of the other.
  // shows: sealed
  @Test func `asks nothing over the line of another question`() throws {
    let (sealed, sent) = (try Sealed(), Locked<[LyingRelay.Sent]>([]))
    sealed.lie { script in
      script.up = { own in
        sent.withLock { $0.append(own) }
        _ = soon { sent.withLock { $0.count } == 2 }
        return sent.withLock { $0.filter { $0 != own } }
      }
    }
    let faults = Locked<[TransportFault?]>([])
    for _ in 0..<2 {
      try startThread {
        let fault = sealed.fault()
        faults.withLock { $0.append(fault) }
      }
    }
    #expect(soon { faults.withLock { $0.count } == 2 })
    #expect(faults.withLock { $0 } == [.unknown, .unknown] && sealed.heard == 0)
    #expect(sent.withLock { $0.count } == 2)
  }

  @Test func `carries the longest question and answer`() throws {
    let sealed = try Sealed()
    let long = try secret(VerifierPool.longestBody)
    #expect(try sealed.ask(.question, long) == VerifierAnswer(to: .question, bytes(long)))
  }

  // shows: sealed
  @Test func `has asked once what it sends twice`() throws {
    let sealed = try Sealed()
    sealed.lie { script in
      script.up = { [$0, $0, $0] }
      script.down = { $0.prefix(1).map { $0 } }
    }
    #expect(try sealed.ask().body == sealed.typed)
    #expect(sealed.heard == 1)
    #expect(sealed.relay.answered.withLock { $0.map(\.kind) } == [0x87, 0xee, 0xee])
    // And with one that came before.
    let old = try #require(sealed.relay.asked.withLock { $0.first })
    sealed.lie { script in
      script.up = { [old, $0] }
    }
    #expect(try sealed.ask().body == sealed.typed)
    #expect(sealed.heard == 2)
  }

  /// On another connection, at another verifier of the fleet, at one that was started again, and as
  /// another host of the fleet.
  // shows: sealed
  @Test func `has asked there alone`() throws {
    let sealed = try Sealed()
    sealed.lie { $0.up = { _ in [] } }
    #expect(sealed.fault(within: 300) == .unknown)
    let held = try #require(sealed.relay.asked.withLock { $0.first })
    let other = try newIdentity()
    sealed.seals.state.withLock { [pin = sealed.identity.pin] state in
      state.keys[other.pin] = state.keys[pin]
    }
    let second = try TestVerifier(sealed.verifier.identity, seals: sealed.seals)
    for (verifier, identity) in [
      (sealed.verifier, sealed.identity), (second, sealed.identity), (sealed.verifier, other),
    ] {
      let raw = try verifier.raw()
      let side = try #require(TLSSide(identity, pins: [verifier.identity.pin]))
      #expect(try raw.greet(side) == 0x84)
      #expect(raw.write(held.bytes))
      #expect(raw.frame()?.kind == 0xee)
    }
    #expect(sealed.heard + second.asked.withLock { $0.count } == 0)
  }

  // shows: sealed
  @Test func `asks nothing where the greeting is a lie`() throws {
    let sealed = try Sealed()
    let proof = [UInt8](repeating: 5, count: SealKeys.proofLength)
    let nonce = [UInt8](repeating: 9, count: SealedPlace.nonceLength)
    let lies: [(UInt8, [UInt8])] = [
      (0x84, [1]), (0x84, [1, 0]), (0x84, [1, 2]), (0x84, [1, 2] + nonce),
      (0x84, [1, 2] + proof.dropLast()),
      // Keys that the host does not have.
      (0x84, [1, 0] + nonce + [UInt8](repeating: 8, count: SealKeys.nameLength)),
    ]
    for (kind, body) in lies {
      sealed.lie { $0.greeting = { LyingRelay.Sent(nonce: $0.nonce, kind: kind, body: body) } }
      #expect(sealed.fault(within: 2000) == .unsealed, "\(body)")
    }
    for (kind, body): (UInt8, [UInt8]) in [(0x84, [1, 1]), (0xed, [1])] {
      sealed.lie { $0.greeting = { LyingRelay.Sent(nonce: $0.nonce, kind: kind, body: body) } }
      #expect(sealed.fault(within: 2000) == .stranger, "\(body)")
    }
    #expect(sealed.relay.asked.withLock { $0.isEmpty })
    // A nonce of its own.
    let name = try sealKeys(5).name
    sealed.lie {
      $0.greeting = {
        LyingRelay.Sent(nonce: $0.nonce, kind: $0.kind, body: [1, 0] + nonce + name)
      }
    }
    #expect(sealed.fault() == .unknown)
    #expect(sealed.heard == 0)
    // The proof itself.
    sealed.lie {
      $0.greeting = { LyingRelay.Sent(nonce: $0.nonce, kind: $0.kind, body: [1, 2] + proof) }
    }
    #expect(sealed.fault() == .revoked)
  }

  @Test func `is told that it was revoked by the verifier's proof`() throws {
    let sealed = try Sealed()
    sealed.verifier.revoked.withLock { $0 = [sealed.identity.pin] }
    #expect(sealed.fault(within: 2000) == .unsealed)
    sealed.seals.state.withLock {
      $0.proofs = [3, 5].map { [UInt8](repeating: $0, count: SealKeys.proofLength) }
    }
    #expect(sealed.fault() == .revoked)
  }

  @Test func `is asked no more by junk, and answered among it`() throws {
    let sealed = try Sealed()
    sealed.lie { script in
      script.up = { sent in
        (0..<200).map { LyingRelay.Sent(nonce: $0, kind: UInt8($0 % 9), body: [UInt8($0)]) }
          .filter { $0.kind != 2 } + [sent]
      }
    }
    #expect(try sealed.ask().body == sealed.typed)
    #expect(sealed.heard == 1)
    #expect(sealed.seals.state.withLock { $0.unsealed } > 0)
  }

  @Test func `is not answered where it stops, and is later`() throws {
    let sealed = try Sealed()
    sealed.lie { $0.down = { _ in [] } }
    #expect(sealed.fault(within: 300) == .unknown)
    sealed.lie { $0.greeting = { _ in nil } }
    #expect(sealed.fault(within: 2000) == .away)
    sealed.lie { _ in }
    #expect(sealed.fault() == nil)
  }

  @Test func `waits a minute at most for what is held back`() throws {
    let (pin, seals) = (try newIdentity().pin, FakeSeals())
    let keys = try sealKeys(5)
    seals.state.withLock { $0.keys[pin] = [keys] }
    let minute = SealedAnswers.patience
    for (wait, isOpened) in [(minute - 1, true), (minute, false)] {
      let verifier = try #require(SealedAnswers(seals, of: pin, now: 1000))
      let host = SealedQuestions(HostSeal(pin, keys), keys, nonce: verifier.nonce)
      let first = try #require(host.question(1, try secret(3)))
      #expect(verifier.opened(0x07, first, now: 1000) != nil)
      let answer = try #require(verifier.sealed(0x81, try secret(1), now: 5000))
      #expect(host.answer(answer.kind, answer.body) != nil)
      let second = try #require(host.question(1, try secret(3)))
      #expect((verifier.opened(0x07, second, now: 5000 + wait) != nil) == isOpened)
    }
  }
}

extension LyingRelay.Sent {
  fileprivate func flipped(_ bit: Int) -> Self {
    var changed = self
    if bit / 8 < body.count { changed.body[bit / 8] ^= 1 << UInt8(bit % 8) }
    return changed
  }
}
