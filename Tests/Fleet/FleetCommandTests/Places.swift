import SallyportCLI

@testable import FleetCommand

extension FleetPlace {
  /// Of a machine that is in no fleet.
  static var nowhere: FleetPlace {
    FleetPlace(directory: "/nonexistent", tellService: { _ in nil })
  }
}

extension Bench {
  convenience init(_ place: FleetPlace) {
    self.init()
    fleet = place
  }

  var place: FleetPlace {
    get { fleet as? FleetPlace ?? .nowhere }
    set { fleet = newValue }
  }
}
