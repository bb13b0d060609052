"""The cases of Tests/Vectors/setups.txt, for a machine to be set up so."""

from support.sallyport import REPOSITORY

VECTORS = REPOSITORY / "Tests/Vectors"


def _lines(name):
    return [line for line in (VECTORS / name).read_text().splitlines()
            if line and not line.startswith("#")]


def _distributions():
    """{distribution: {file: lines}}"""
    found = {}
    for line in _lines("setups.txt"):
        if line.startswith("== "):
            files = found[line[3:]] = {}
        elif line.startswith("-- "):
            content = files[line[3:]] = []
        else:
            content.append(line)
    return found


DISTRIBUTIONS = _distributions()


class SetupCase:
    """files: {file: lines}; locked_out, let_in: what doctor says; unreal: why nobody can try it."""

    def __init__(self, lines):
        self.name = lines[0][2:]
        self.distribution, self.service, self.unreal = "debian", "sshd", None
        self.findings, self.locked_out, self.let_in = [], [], []
        rest = []
        for line in lines[1:]:
            word, _, text = line.partition(" ")
            is_edit = text.split()[1:2] and text.split()[1] in ("after", "before", "drop")
            if word == "on":
                self.distribution = text
            elif word in ("service", "unreal", "enabled"):
                setattr(self, word, text)
            elif word == "finds":
                self.findings = text.split(", ")
            elif word == "out":
                self.locked_out.append(text)
            elif word == "in" and not is_edit:
                self.let_in.append(text)
            else:
                rest.append((word, text))
        self.files = {name: list(content)
                      for name, content in DISTRIBUTIONS[self.distribution].items()}
        self._edit(rest)

    def _edit(self, edits):
        for word, text in edits:
            if word == "+":
                content.insert(index, text)
                index += 1
            elif word == "ssh":
                content = self.files["sshd_config"]
                index = 0 if text == "first" else len(content)
            else:
                name, how, start = text.split(" ", 2)
                content = self.files[name]
                index = next(at for at, line in enumerate(content) if line.startswith(start))
                if how == "drop":
                    del content[index]
                index += how == "after"


def _cases():
    blocks = []
    for line in _lines("setup-cases.txt"):
        if line.startswith("* "):
            blocks.append([])
        blocks[-1].append(line)
    return [SetupCase(block) for block in blocks]


SETUPS = {setup.name: setup for setup in _cases()}
