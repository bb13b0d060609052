"""What was measured: one table, and the same as JSON."""

import json
from statistics import median

OURS, THEIRS = "sallyport", "google-authenticator"
COLUMNS = [OURS, THEIRS, "oath", "pam_permit"]
OF_FLEETS = [OURS, "FreeRADIUS"]


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{round(value):,}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


class Report:
    def __init__(self, about):
        self.about, self.rows, self._section, self._columns = about, [], "", COLUMNS

    def section(self, title, columns=COLUMNS):
        self._section, self._columns = title, columns
        print(f"\n{title}", flush=True)
        print(f"  {'':44}" + "".join(f"{name:>21}" for name in columns) + f"{'ours/GA':>9}  target")

    def row(self, what, values, target="", ratio=None):
        """`values`: {column: figure or text}; `ratio`: ours to theirs, where not of the figures, or
        False where it would say nothing."""
        ours, theirs = values.get(OURS), values.get(THEIRS)
        if ratio is None and theirs and not isinstance(ours, str) and ours is not None:
            ratio = ours / theirs
        ratio = None if ratio is False else ratio
        self.rows.append({"section": self._section, "columns": self._columns, "what": what, "values": values,
                          "ratio": ratio, "target": target})
        cells = "".join(f"{shown(values.get(name)):>21}" for name in self._columns)
        ratio = "-" if ratio is None else f"{ratio:.2f}"
        print(f"  {what:44}{cells}{ratio:>9}  {target}", flush=True)

    def find(self, section, what):
        return next((row for row in self.rows
                     if row["section"].startswith(section) and row["what"] == what), None)

    def markdown(self):
        """The tables of Tests/Bench/README.md."""
        for section, columns in {row["section"]: row["columns"] for row in self.rows}.items():
            yield f"\n### {section}\n\n| | {' | '.join(columns)} | ours/GA | to reach |"
            yield "|---|" + "--:|" * (len(columns) + 1) + "---|"
            for row in self.rows:
                if row["section"] == section:
                    cells = [shown(row["values"].get(name)) for name in columns]
                    cells.append("-" if row["ratio"] is None else f"{row['ratio']:.2f}")
                    yield f"| {' | '.join([row['what'].strip(), *cells, row['target']])} |"

    def write(self, directory):
        told = {"about": self.about, "rows": self.rows}
        (directory / "result.json").write_text(json.dumps(told, indent=1) + "\n")
        (directory / "tables.md").write_text("\n".join(self.markdown()) + "\n")


def paired(ours, theirs):
    """The median of the ratios of pairs measured one after the other."""
    return median(a / b for a, b in zip(ours, theirs))


def percentile(values, share):
    """nan where there are none."""
    ordered = sorted(values) or [float("nan")]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
