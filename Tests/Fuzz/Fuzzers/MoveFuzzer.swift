import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore

extension Fuzzer {
  /// What reads as a request to move an enrollment, as one about people, or as an answer, is
  /// written the same; a marked file is no enrollment to anybody else. The first byte says which of
  /// them the rest is.
  static let move = Fuzzer(name: "move") { input in
    var input = Input(input)
    let kind = input.byte() % 14
    let rest = input.remaining()
    switch kind {
    case 0:
      guard let request = MoveRequest.decode(secret(rest)) else { return }
      switch request {
      case .look, .fetch, .bury: break
      case .put(let moving, _), .merge(let moving):
        must(moving.enrollment.uid == nil, "a uid")
        must(moving.enrollment.id == moving.state.enrollmentID, "another one's state")
      }
      let again = unwrapped(request.encoded(), "does not write what it read")
      must(bytes(again) == rest, "a request is written otherwise")
    case 1:
      guard let answer = MoveAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "an answer")
    case 2: checkMark(secret(rest))
    case 3:
      guard let request = PersonRequest.decode(secret(rest)) else { return }
      let again = unwrapped(request.encoded(), "does not write what it read")
      must(bytes(again) == rest, "a person's request")
    case 4:
      guard let answer = PersonAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a person's answer")
    case 5:
      guard let answer = FetchAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a fetch's answer")
    case 6:
      guard let request = RosterRequest.decode(secret(rest)) else { return }
      must((1...RosterRequest.most).contains(request.names.count), "asks about too many")
      let again = unwrapped(request.encoded(), "does not write what it read")
      must(bytes(again) == rest, "a roster's request")
    case 7:
      guard let answer = RosterAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a roster's answer")
    case 8: checkPeople(secret(rest))
    case 9:
      guard let answer = PeopleAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a page of people")
    case 10: checkEvents(secret(rest))
    case 12:
      guard let request = HelpRequest.decode(secret(rest)) else { return }
      let again = unwrapped(request.encoded(), "does not write what it read")
      must(bytes(again) == rest, "a helper's request")
      must(LoginQuestion.decode(secret(rest)) == nil, "a question, too")
    case 13:
      guard let answer = HelpAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a helper's answer")
    case _:
      guard let answer = EventsAnswer.decode(rest) else { return }
      must(unwrapped(answer.encoded(), "does not write what it read") == rest, "a page of events")
    }
  }
}

private func checkPeople(_ frame: Secret) {
  guard let request = PeopleRequest.decode(frame) else { return }
  must((1...PeopleRequest.most).contains(request.count), "asks about too many")
  let again = unwrapped(request.encoded(), "does not write what it read")
  must(bytes(again) == bytes(frame), "a request of a page of people")
}

private func checkEvents(_ frame: Secret) {
  guard let request = EventsRequest.decode(frame) else { return }
  must(max(request.since, request.upTo) <= EventsRequest.latest, "a moment that is no number")
  let again = unwrapped(request.encoded(), "does not write what it read")
  must(bytes(again) == bytes(frame), "a request of a page of events")
}

private func checkMark(_ text: Secret) {
  guard let (enrollment, mark) = try? Enrollment.readMoving(text) else { return }
  let isReadByAll = (try? Enrollment.read(text)) != nil
  must(isReadByAll == (mark == nil), "a user in migration is verified by the file")
  guard let mark else { return }
  let written = unwrapped(enrollment.written(with: mark), "out of memory")
  let again = unwrapped(try? Enrollment.readMoving(written), "does not read what it wrote")
  must(again.mark == mark && again.enrollment.id == enrollment.id, "another mark")
}
