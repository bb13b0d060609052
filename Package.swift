// swift-tools-version: 6.2
import PackageDescription

/// Strict everywhere: a warning is an error, and every unsafe construct is named where it stands.
let strict: [SwiftSetting] = [
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
let quick = strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// What enters pam_sallyport.so is built a second time as Embedded Swift (`--traits Module`):
/// no Swift runtime, no signal handlers and no environment look-ups inside sshd and sudo.
let embeddable = strict + [.enableExperimentalFeature("Embedded", .when(traits: ["Module"]))]
let optimized = embeddable + quick.suffix(1)

let inC: [CSetting] = [.define("_GNU_SOURCE")]

/// The module loads libcrypto when it first computes. The programs have it from the start: they
/// would rather not start without it, and so their packages depend on it.
let withLibcrypto: [LinkerSetting] = [.linkedLibrary("crypto")]

/// The link of the module itself. lld, because it honours the version script to the letter. No
/// start files: nothing in it has to run when a host loads it. No index of the unwind tables: the
/// functions in Swift have none. Here the optimizer sees the module as a whole (pam/build), inlines
/// what makes it no larger, and makes one of runs of instructions and of ends that are alike.
let moduleLink: [LinkerSetting] = [
  .unsafeFlags(
    [
      "-use-ld=lld", "-Xclang-linker", "-nostartfiles",
      "-Xlinker", "--version-script=pam/pam_sallyport.map",
      "-Xlinker", "-soname=pam_sallyport.so", "-Xlinker", "-znodelete", "-Xlinker", "-zdefs",
      "-Xlinker", "-zrelro", "-Xlinker", "-znow", "-Xlinker", "--as-needed",
      "-Xlinker", "--gc-sections", "-Xlinker", "--icf=all", "-Xlinker", "--no-undefined-version",
      "-Xlinker", "--no-eh-frame-hdr", "-Xlinker", "-O2",
      "-Xlinker", "-mllvm", "-Xlinker", "-inline-threshold=0",
      "-Xlinker", "-mllvm", "-Xlinker", "-enable-machine-outliner=always",
      "-Xlinker", "-mllvm", "-Xlinker", "-tail-merge-size=2",
    ], .when(traits: ["Module"])),
  .linkedLibrary("swiftUnicodeDataTables", .when(traits: ["Module"])),
]

/// The sources and the tests are in three parts: Login <- Host <- Fleet. `PART=login swift build`
/// builds the first one alone, `PART=host` the first two; neither reads what lies in the others.
let parts = ["login", "host", "all"]
let chosenPart = Context.environment["PART"] ?? "all"
guard parts.contains(chosenPart) else { fatalError("PART is one of \(parts)") }
let withHost = chosenPart != "login"
let withFleet = chosenPart == "all"

/// What the main file of an executable joins with its fleet side, where that is built.
let joining: [SwiftSetting] = strict + (withFleet ? [.define("FLEET")] : [])
func fleetSide(_ target: String) -> [Target.Dependency] {
  withFleet ? [.byName(name: target)] : []
}

func part(_ name: String, _ targets: [Target]) -> [Target] {
  for target in targets {
    target.path = "\(target.type == .test ? "Tests" : "Sources")/\(name)/\(target.name)"
  }
  return targets
}

/// What runs in sshd and sudo, and what its answers need.
let login = part(
  "Login",
  [
    .target(name: "CLibcrypto", cSettings: inC),
    .target(name: "CLinuxPAM", dependencies: ["CSystem"], cSettings: inC),
    // The archive by its name: `-lqrcodegen` takes the shared library where both are installed.
    .target(
      name: "CQRCodeGen", cSettings: inC, linkerSettings: [.linkedLibrary(":libqrcodegen.a")]),
    .target(name: "CSystem", cSettings: inC),
    .target(name: "OneTimePassword", dependencies: ["CLibcrypto"], swiftSettings: optimized),
    .target(name: "SallyportCore", dependencies: ["OneTimePassword"], swiftSettings: optimized),
    .target(
      name: "SallyportSystem",
      dependencies: ["OneTimePassword", "SallyportCore", "CSystem", "CQRCodeGen"],
      swiftSettings: embeddable),
    .target(
      name: "SallyportLogin",
      dependencies: ["OneTimePassword", "SallyportCore", "SallyportSystem", "CSystem"],
      swiftSettings: embeddable),
    .target(
      name: "PAMSallyport",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "CLinuxPAM",
      ],
      swiftSettings: embeddable, linkerSettings: [.linkedLibrary("pam")]),
    .target(
      name: "pam_sallyport", dependencies: ["PAMSallyport", "CLinuxPAM"],
      swiftSettings: embeddable, linkerSettings: moduleLink),
    .testTarget(
      name: "OneTimePasswordTests", dependencies: ["OneTimePassword", "CLibcrypto", "TestSupport"],
      swiftSettings: strict, linkerSettings: withLibcrypto),
    .testTarget(
      name: "SallyportCoreTests",
      dependencies: ["OneTimePassword", "SallyportCore", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "SallyportSystemTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "CSystem", "TestSupport",
      ],
      swiftSettings: strict),
  ])

/// The tests of the flow, which need nothing else. The part Host has the same, that they can run
/// through its service as well (SALLYPORT_TESTS_ASK=service).
let flowAlone = part(
  "Login",
  [
    .testTarget(
      name: "PAMSallyportTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "PAMSallyport",
        "TestSupport",
      ],
      swiftSettings: strict)
  ])

/// The other programs of one machine.
let host = part(
  "Host",
  [
    .target(name: "CCommand", cSettings: inC),
    .target(name: "CService", dependencies: ["CSystem"], cSettings: inC),
    .target(
      name: "CSession", dependencies: ["CService"], cSettings: inC,
      linkerSettings: [.linkedLibrary("pam")]),
    .target(
      name: "SallyportAdministration",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "CService",
        "CSystem",
      ],
      swiftSettings: strict),
    .target(
      name: "SallyportSupport",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "CCommand",
        "CService",
      ],
      swiftSettings: strict),
    .target(
      name: "SessionProtocol", dependencies: ["OneTimePassword", "SallyportCore", "CSystem"],
      swiftSettings: strict),
    .target(
      name: "SallyportService",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "SallyportSupport",
        "CService",
      ], swiftSettings: strict),
    .executableTarget(
      name: "sallyportd",
      dependencies: [
        "OneTimePassword", "SallyportSystem", "SallyportSupport", "SallyportService", "CService",
      ] + fleetSide("FleetHost"),
      swiftSettings: joining, linkerSettings: withLibcrypto),
    .target(
      name: "SallyportSession",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "SessionProtocol", "CService", "CSession",
      ], swiftSettings: strict),
    .executableTarget(
      name: "sallyport-session", dependencies: ["SallyportSession"], swiftSettings: strict,
      linkerSettings: withLibcrypto),
    .testTarget(
      name: "PAMSallyportTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "PAMSallyport",
        "SallyportSupport", "SallyportService", "TestSupport",
      ],
      exclude: ["Flow/Direct.swift"], swiftSettings: strict),
    .testTarget(
      name: "SallyportAdministrationTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration", "CSystem",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SallyportServiceTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "SallyportService", "CService", "CSystem",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SallyportSessionTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SessionProtocol", "SallyportSession", "TestSupport",
      ], swiftSettings: strict, linkerSettings: [.linkedLibrary("pam")]),
    .testTarget(
      name: "SessionProtocolTests",
      dependencies: ["OneTimePassword", "SallyportCore", "SessionProtocol", "TestSupport"],
      swiftSettings: strict),
  ])

/// The command, its parts and its tests.
let command = part(
  "Host",
  [
    .target(
      name: "PAMStack", dependencies: ["SallyportCore", "SallyportSupport"], swiftSettings: quick),
    .target(name: "CDecryption", cSettings: inC, linkerSettings: withLibcrypto),
    .target(
      name: "SallyportImport",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportSupport", "CCommand", "CDecryption",
      ], swiftSettings: strict),
    .target(
      name: "SallyportDoctor",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "PAMSallyport", "SallyportSupport", "PAMStack", "CCommand", "CSystem",
      ], swiftSettings: quick),
    .target(
      name: "SallyportCLI",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "PAMStack", "SallyportImport", "SallyportDoctor",
        "SessionProtocol", "CCommand", "CService",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], swiftSettings: strict),
    .executableTarget(
      name: "sallyport", dependencies: ["SallyportCLI"] + fleetSide("FleetCommand"),
      swiftSettings: joining, linkerSettings: withLibcrypto),
    .testTarget(
      name: "PAMStackTests", dependencies: ["PAMStack", "CLinuxPAM", "TestSupport"],
      swiftSettings: strict, linkerSettings: [.linkedLibrary("pam")]),
    .testTarget(
      name: "SallyportImportTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportAdministration", "SallyportSupport",
        "SallyportImport", "TestSupport",
      ], swiftSettings: strict),
    .testTarget(
      name: "SallyportDoctorTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportSupport", "PAMStack",
        "SallyportDoctor", "CCommand", "CLinuxPAM", "TestSupport",
      ], swiftSettings: strict, linkerSettings: [.linkedLibrary("pam")]),
    .testTarget(
      name: "SallyportCLITests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportSupport", "PAMStack", "SallyportDoctor", "SallyportCLI", "TestSupport",
      ], swiftSettings: strict),
  ])

/// Machines that share their enrollments.
let fleet = part(
  "Fleet",
  [
    .target(
      name: "CTLS", cSettings: inC,
      linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
    .target(name: "CSealing", cSettings: inC, linkerSettings: withLibcrypto),
    .target(
      name: "CPostgres", dependencies: ["CSystem"], cSettings: inC,
      linkerSettings: [
        .linkedLibrary("pq"), .linkedLibrary("ssl"), .linkedLibrary("crypto"),
      ]),
    .target(
      name: "FleetProtocol", dependencies: ["OneTimePassword", "SallyportCore"],
      swiftSettings: quick),
    .target(
      name: "FleetTransport",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSupport", "FleetProtocol", "CSealing", "CTLS",
        "CService", "CSystem",
      ], swiftSettings: strict),
    .target(
      name: "FleetHost",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "SallyportService", "FleetProtocol", "FleetTransport",
        "CService",
      ], swiftSettings: strict),
    .target(
      name: "SallyportVerifier",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "FleetProtocol", "FleetTransport", "CSealing",
        "CPostgres", "CService",
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "sallyport-verifier",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "SallyportSupport",
        "FleetProtocol", "FleetTransport", "SallyportVerifier", "CService",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], swiftSettings: strict),
    .testTarget(
      name: "FleetProtocolTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportAdministration", "FleetProtocol",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FleetTransportTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSupport", "FleetTransport", "CTLS",
        "CService",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FleetHostTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "SallyportService", "FleetProtocol", "FleetTransport",
        "FleetHost", "CService", "CSystem", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SallyportVerifierTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "FleetProtocol", "FleetTransport",
        "SallyportVerifier",
        "TestSupport",
      ],
      swiftSettings: strict),
  ])

/// What the command has of a fleet.
let fleetCommand = part(
  "Fleet",
  [
    .target(
      name: "FleetCommand",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "SallyportDoctor", "SallyportCLI", "FleetProtocol",
        "FleetTransport", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], swiftSettings: strict),
    .testTarget(
      name: "FleetVerbTableTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "SallyportSupport", "PAMStack", "SallyportDoctor", "SallyportCLI",
        "FleetProtocol", "FleetTransport", "SallyportVerifier", "FleetCommand", "TestSupport",
      ], swiftSettings: strict, linkerSettings: withLibcrypto),
    .testTarget(
      name: "FleetCommandTests",
      dependencies: [
        "OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportAdministration",
        "SallyportLogin", "PAMStack", "SallyportDoctor", "SallyportCLI", "FleetProtocol",
        "FleetTransport", "FleetCommand", "TestSupport",
      ], swiftSettings: strict, linkerSettings: withLibcrypto),
  ])

let support: Target =
  .target(
    name: "TestSupport", dependencies: ["OneTimePassword", "SallyportCore"],
    path: "Tests/TestSupport", swiftSettings: strict)

/// The executables, which have the names of their targets.
let executables =
  (withHost ? ["sallyportd", "sallyport-session", "sallyport"] : [])
  + (withFleet ? ["sallyport-verifier"] : [])

let package = Package(
  name: "sallyport",
  products: [
    .library(name: "pam_sallyport", type: .dynamic, targets: ["pam_sallyport"])
  ] + executables.map { .executable(name: $0, targets: [$0]) },
  traits: [.trait(name: "Module", description: "Embedded Swift for pam_sallyport.so")],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2")
  ],
  targets: [support] + login + (withHost ? host + command : flowAlone)
    + (withFleet ? fleet + fleetCommand : [])
)

/// `ONLY=SallyportCoreTests swift build --build-tests` builds that target, or several with blanks
/// between them, and what they need: all test targets are one bundle, in which a test of the core
/// waits for those of the command.
if let only = Context.environment["ONLY"] {
  var needed: Set<String> = []
  var pending = only.split(separator: " ").map(String.init)
  while let name = pending.popLast() {
    guard let target = package.targets.first(where: { $0.name == name }),
      needed.insert(name).inserted
    else { continue }
    for case .byNameItem(let dependency, _) in target.dependencies { pending.append(dependency) }
  }
  package.targets.removeAll { !needed.contains($0.name) }
  package.products = []
}
