import Glibc
import SallyportCLI

exit(Command.start())
