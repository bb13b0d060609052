"""Of the collected tests those that are tried again (SALLYPORT_ONLY, a name a line; see Tests/Verdict/rings)."""

import os


def name(node):
    """Without the directories of its file, which depend on where pytest runs."""
    path, separator, test = node.partition("::")
    return path.rpartition("/")[2] + separator + test


def keep(config, items):
    names = os.environ.get("SALLYPORT_ONLY")
    if not names:
        return
    chosen = {name(line) for line in names.splitlines()}
    kept = [item for item in items if name(item.nodeid) in chosen]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
