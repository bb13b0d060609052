import Glibc
import SallyportCLI

#if FLEET
  import FleetCommand

  exit(Command.start(with: FleetEnvironment.usual))
#else
  exit(Command.start())
#endif
