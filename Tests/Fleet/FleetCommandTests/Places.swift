import SallyportCLI

@testable import FleetCommand

extension FleetEnvironment {
  /// Of a machine that is in no fleet.
  static var nowhere: FleetEnvironment {
    FleetEnvironment(directory: "/nonexistent", tellService: { _ in nil })
  }
}

extension Bench {
  convenience init(_ place: FleetEnvironment) {
    self.init()
    fleet = place
  }

  var place: FleetEnvironment {
    get { fleet as? FleetEnvironment ?? .nowhere }
    set { fleet = newValue }
  }
}
