"""polkit on the private machine: a bus and polkitd, by its own rules (the group sudo decides)."""

import shutil

import programs
from ways import AGENT, AGENT_TEXT

NEEDED = ("pkexec", "pkttyagent", "polkitd", "dbus-daemon", "dbus-send")


def is_here():
    return all(shutil.which(program, path=programs.PROGRAMS) for program in NEEDED)


class Polkit(programs.Pkexec):
    """Without the rule by which alice is an administrator: polkitd does not look where it is."""

    def __init__(self, directory):
        self.RULE = directory / "unused.rules"
        AGENT.write_text(AGENT_TEXT)
        AGENT.chmod(0o755)
        super().__init__(directory)
