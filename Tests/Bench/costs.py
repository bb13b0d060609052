"""Where the instructions of our warm login go; started by hand: Tests/Bench/run profile.

SALLYPORT_MODULE names a module that still has its symbols; that of `make build` has none."""

import subprocess
from pathlib import Path

import warm


def plain(names):
    return subprocess.run(["swift", "demangle", "--compact", "--simplified"], text=True,
                          input="\n".join(names), capture_output=True).stdout.splitlines()


def show(title, counted, found, many, most):
    print(f"\n{title}")
    top = counted.most_common(most)
    for ((path, function), cost), name in zip(top, plain([name for (_, name), _ in top])):
        times = found.calls[path, function] / many
        print(f"  {cost / found.total:6.1%} {cost // many:10,} {times:8.1f} calls  "
              f"{Path(path).name}: {name}")


def measure(directory, module, now, most=40):
    found, many = warm.counts(directory, module, now)
    print(f"\n{found.total // many:,} instructions a login")
    for path, cost in found.objects.most_common(6):
        print(f"  {cost / found.total:6.1%} {cost // many:10,}  {Path(path).name}")
    show("in the function itself", found.functions, found, many, most)
    show("with all that it calls", found.below, found, many, 2 * most)
