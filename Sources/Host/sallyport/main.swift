import Glibc
import SallyportCLI

#if FLEET
  import FleetCommand

  exit(Command.start(with: FleetPlace.usual))
#else
  exit(Command.start())
#endif
