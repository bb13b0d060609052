"""What doctor's JSON says of each cell of a machine: the table under `access`.

`ways` are its columns, `accounts` its rows, and a cell names its column by number. A way over ssh
is one for each kind of connection, and a cell of it is about one list of methods. Where a list has
no cell of its own, the column's one cell tells of the worst that any of its lists lets happen.
"""

import ipaddress
import json
import re
import subprocess
from dataclasses import dataclass, replace

from clinic import PRELOADED
from support.sallyport import COMMAND
from ways import ASKED, OPEN, REFUSED, VARIANT, WAYS, Connection

UNSEEN = "unseen"
RESULTS = {"asked": ASKED, "refused": REFUSED, "withoutCode": OPEN, "unseen": UNSEEN}
WORST = (REFUSED, ASKED, UNSEEN, OPEN)  # the worse the later: what a column of several lists tells
# Why a cell may be unseen, whole: the cases of `Gap`. With another, or too often, it is wrong.
UNSEEN_FOR = {
    "notRoot", "fleetSilent", "fleetKeeps", "sshdSilent", "sudoSilent",
    "keysElsewhere", "polkitRules", "moduleDecides", "tooComplex", "tooMany", "slowFiles",
    "otherStore",
}
MOST_UNSEEN = 0.02


@dataclass(frozen=True)
class Forecast:
    """`is_bound`: no more is said than that nothing worse happens, of any of several lists."""

    account: str
    way: str
    result: str
    why: str = ""
    line: str | None = None
    is_bound: bool = False
    on_purpose: str | None = None

    @property
    def is_unseen_for_a_reason(self):
        return self.result == UNSEEN and self.why in UNSEEN_FOR

    def agrees(self, result):
        if self.is_bound:
            return WORST.index(result) <= WORST.index(self.result)
        return self.result == result


def doctor(command=COMMAND):
    """The JSON of the machine as it is now. `command`: one with a fault in it."""
    done = subprocess.run([command, "doctor", "--json"], env=PRELOADED, capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)


def forecast(said, keys):
    """{(account, way): Forecast} of the ways that were tried, and of those that the table has
    besides. `keys`: the (account, way) that were tried; that of ssh has its methods in it."""
    return of_table(said.get("access") or {"ways": [], "accounts": []}, keys)


def of_table(table, keys):
    cells = {}
    for row in table["accounts"]:
        assert all(account != row["user"] for account, _ in cells), f"{row['user']} has two rows"
        for cell in row["cells"]:
            way, made = table["ways"][cell["way"]], made_of(row, cell)
            places = cells.setdefault((row["user"], cell["way"]), {})
            assert made.way not in places, f"{row['user']} by {way['name']} {made.way} stands twice"
            places[made.way] = made
    return {key: found for key in dict.fromkeys((*keys, *all_keys(table, cells, keys)))
            if (found := of_key(table, cells, *key)) is not None}


def made_of(row, cell):
    line = f"{cell['file']}:{cell['line']}" if cell.get("file") else None
    return Forecast(row["user"], ",".join(cell.get("methods") or ()), RESULTS[cell["verdict"]],
                    cell.get("reason") or "", line, on_purpose=cell.get("onPurpose"))


def all_keys(table, cells, keys):
    """What the table says of ways that nobody has tried."""
    connections = {(account, Connection.of(way)) for account, way in keys if Connection.of(way)}
    for (account, number), places in cells.items():
        way = table["ways"][number]
        if not is_ssh(way):
            if name_of(way) is not None:
                yield account, name_of(way)
        elif len(places) > 1:
            for marked in (one.mark for name, one in connections if name == account):
                if column(table, cells, account, f"sshd x{marked}") == number:
                    yield from ((account, f"sshd {methods}{marked}") for methods in places)


def of_key(table, cells, account, way):
    """Of one (account, way)."""
    places = cells.get((account, column(table, cells, account, way)), {})
    methods = Connection.methods_of(way)
    if not places and way in VARIANT:
        usual = of_key(table, cells, account, VARIANT[way])
        return usual and replace(usual, way=way, is_bound=True)
    if not places:
        return None
    if methods is None:
        [found] = places.values()
        return named(found, way)
    if methods in places:
        return named(places[methods], way)
    if len(places) > 1:
        return None
    [worst] = places.values()
    return named(worst, way, is_bound=True)


def named(cell, way, is_bound=False):
    return Forecast(cell.account, way, cell.result, cell.why, cell.line, is_bound, cell.on_purpose)


# MARK: columns


def is_ssh(way):
    return way["service"] == "sshd"


def name_of(way):
    """The name that ways.py has for a column; None for one that nobody tries here."""
    for name, test in WAYS.items():
        if test(way["service"], way["name"]):
            return name
    return None


def column(table, cells, account, way):
    """The number of the column in which this account has a cell; None where there is none. Of ssh
    that whose connections have our address, the narrowest of several, or else the one for all
    others."""
    connection = Connection.of(way)
    columns = [(number, one) for number, one in enumerate(table["ways"])
               if (account, number) in cells]
    if connection is None:
        return next((number for number, one in columns
                     if not is_ssh(one) and name_of(one) == way), None)
    fitting = [(width, number) for number, one in columns
               if is_ssh(one) and (width := width_of(one.get("from"), connection)) is not None]
    return min(fitting)[1] if fitting else None


def width_of(text, connection):
    """How wide a kind of connection is that has ours in it; None for one that has not. `text`:
    nothing, or a name such as "from 192.0.2.0/24", "address 192.0.2.7", "this machine"."""
    if text in (None, "anywhere"):
        return 1 << 33
    if text == "this machine":
        return 0 if connection.address == "127.0.0.1" else None
    found = re.search(r"(?:^| )(?:from|address) ([0-9a-f.:/]+)$", text)
    if found is None:
        return None
    network = ipaddress.ip_network(found[1], strict=False)
    return network.num_addresses if ipaddress.ip_address(connection.address) in network else None
