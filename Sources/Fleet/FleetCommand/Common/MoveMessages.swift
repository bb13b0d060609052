import FleetTransport
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

extension MoveFault {
  /// What became of one, in a list.
  var text: String {
    switch self {
    case .store(let trouble):
      Message(trouble, at: Invocation(verb: "fleet push", store: nil)).text
    case .notEnrolled: "not enrolled here"
    case .otherSpelling(let own):
      "is another spelling of the account \(own): sallyport unenroll --uid removes what is stored"
    case .noAccount: "has no account here: the fleet knows people who have one"
    case .keptByPolicy: "the policy has this machine's files judge (verification = local)"
    case .lastBreakGlass: "nobody else could become root here while the fleet is away"
    case .otherEnrollment: "the fleet has this name, enrolled with other secrets"
    case .gone: "was in the fleet, and is not any more: he was removed there, or taken elsewhere"
    case .isTheFleets: "the policy has the fleet judge (verification = fleet)"
    case .beingTaken: "is being taken back from the fleet: sallyport fleet take goes on"
    case .isPushed: "is on the way to the fleet: sallyport fleet push goes on"
    case .isHere: "enrolled here already"
    case .notInFleet: "not enrolled in the fleet"
    case .usedElsewhere(let hosts):
      "let in within 30 days on "
        + hosts.map { printable($0.utf8, limit: 253) }
        .joined(separator: ", ")
    case .held:
      "the fleet has lost what was saved, and judges no backup code for a quarter of an hour"
    case .takenOtherwise: "not in the fleet any more as the copy here has it"
    case .changed: "the fleet changed in the same moment"
    case .notAllowed: "this host may not enroll people of the fleet (enrolls = no)"
    case .line(.away): "no verifier can be reached"
    case .line(.unknown): "the verifier did not answer"
    case .line(.unpinned): "another key than the fleet's is at the verifiers' addresses"
    case .line(.revoked): "the verifiers do not know this host's key: it was revoked"
    case .databaseAway: "the verifier's database does not answer"
    case .notServed: "the verifier is of an older version, which does not know this: upgrade it"
    case .unknown: "whether it is in the fleet is not known: asked and refused until it is"
    }
  }
}

extension Message {
  init(_ fault: MoveFault, _ user: String?, _ invocation: Invocation) {
    let who = user.map { printable($0.utf8, limit: 64) }
    let subject = who.map { "\($0): " } ?? ""
    let again = [invocation.again(remark: "goes on")]
    switch fault {
    case .store(let trouble): self.init(trouble, at: invocation)
    case .notEnrolled, .otherSpelling: self.init(subject + fault.text, .refused)
    case .noAccount: self.init(subject + fault.text, .noUser)
    case .keptByPolicy:
      self.init(
        subject + fault.text + ": nothing was changed", .configuration,
        hints: ["sallyport config edit      verification = fleet, in [default] or in a rule"])
    case .lastBreakGlass:
      self.init(
        subject + fault.text + "; nothing was changed", .refused,
        hints: [
          "sallyport enroll NAME      another account that can become root",
          "sallyport config edit      [rule break-glass] match_user = NAME, verification = local",
        ])
    case .otherEnrollment:
      self.init(
        subject + fault.text + "; nothing was changed", .refused,
        hints: [
          "sallyport config edit      verification = local, where it is another person",
          invocation.again("--keep-fleet", remark: "the same person: keeps what the fleet has"),
        ])
    case .gone:
      self.init(
        subject + fault.text, .refused,
        hints: [invocation.command("unenroll --force", remark: "removes what is left here")])
    case .isTheFleets:
      self.init(
        subject + fault.text + ", who knows nobody who was taken back: nothing was changed",
        .configuration,
        hints: [
          "sallyport config edit      verification = local, in [default] or in a rule"
        ])
    case .beingTaken, .isPushed, .notInFleet: self.init(subject + fault.text, .refused)
    case .isHere: self.init(subject + fault.text + "; nothing was changed", .exists)
    case .usedElsewhere:
      self.init(
        subject + fault.text + ": refused there, once taken; nothing was changed", .refused,
        hints: [invocation.again("--force", remark: "takes all the same")])
    case .takenOtherwise:
      self.init(
        subject + fault.text + ": removed there, or enrolled anew, after it was copied", .refused,
        hints: [invocation.command("unenroll --force", remark: "removes the copy")])
    case .changed, .databaseAway, .held, .unknown, .line(.away), .line(.unknown):
      self.init(subject + fault.text, .busy, hints: again)
    case .notAllowed:
      self.init(
        fault.text + ": nothing was changed", .refused,
        hints: ["sallyport-verifier invite NAME --enrolls      on a verifier, then join again"])
    case .line(.unpinned), .line(.revoked), .notServed:
      self.init(fault.text + "; nothing was changed", .refused)
    }
  }
}
