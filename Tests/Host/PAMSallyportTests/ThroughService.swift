import Foundation
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportService

// The flow as these tests call it: with the files, or, where SALLYPORT_TESTS_ASK is `service`, with
// a service that has the same files. Everything comes to the same.

let isThroughService = ProcessInfo.processInfo.environment["SALLYPORT_TESTS_ASK"] == "service"

func authenticate(_ host: ScriptedHost, _ arguments: ModuleArguments, store: TestStore)
  -> ReturnCode
{
  examining(host, store) { service, isServed in
    PAMSallyport.authenticate(
      host, arguments, store: store, service: service, isServed: isServed)
  }
}

func manageAccount(_ host: ScriptedHost, _ arguments: ModuleArguments, store: TestStore)
  -> ReturnCode
{
  examining(host, store) { service, isServed in
    PAMSallyport.manageAccount(
      host, arguments, store: store, service: service, isServed: isServed)
  }
}

/// The service has a thread of its own, which works only while the flow waits for its answer.
extension TestStore: @unchecked Sendable {}

private func examining(
  _ host: ScriptedHost, _ store: TestStore, _ flow: (any CodeAuthority, Bool) -> ReturnCode
) -> ReturnCode {
  guard isThroughService else { return flow(ServiceAuthority(at: "/nowhere"), false) }
  do {
    let own = try TemporaryDirectory()
    let path = own.path + "/root"
    let listeners = try Listeners.open(root: path, everybody: own.path + "/socket")
    let handler = RequestHandler(store: store) { _, _ in }
    let caller = host.uid
    let service = try Service.start(
      Listeners(root: listeners.root, everybody: nil), root: Limits(workers: 1)
    ) { peer, packet, waiting in
      let peer = Peer(
        socket: .root, process: peer.process, effectiveUser: 0, realUser: caller,
        arrived: peer.arrived)
      return handler.answer(peer, packet, to: waiting)
    }
    defer { service.stop() }
    return flow(ServiceAuthority(at: path), true)
  } catch {
    Issue.record("\(error)")
    return .unavailable
  }
}
