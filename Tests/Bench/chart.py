"""A bar for each ratio of ours to google-authenticator's, as SVG."""

from report import COLUMNS, OURS, THEIRS, shown

CHOSEN = [
    ("1.", "instructions, whole transaction", "instructions of a login"),
    ("1.", "microseconds", "time of a login"),
    ("1.", "system calls", "system calls of a login"),
    ("1.", "bytes to the disk in all", "bytes written by a login"),
    ("2.", "instructions, whole process", "instructions, cold"),
    ("2.", "milliseconds, whole process", "time, cold"),
    ("3.", "ssh to sshd", "ssh login, whole"),
    ("3.", "sudo", "sudo, whole"),
    ("4.", "1,000 users, 8 processes: logins/s", "logins/s, 8 processes (more is better)"),
    ("4.", "10,000 users, 8 processes: logins/s", "logins/s, 10,000 users (more is better)"),
]
WIDTH, LEFT, TOP, STEP, UNIT = 840, 290, 46, 26, 110  # UNIT: pixels of 1, up to 3


def chosen(report):
    for section, what, label in CHOSEN:
        row = next((row for row in report.rows if row["section"].startswith(section)
                    and row["what"].startswith(what)), None)
        if row is not None and row["ratio"] is not None:
            yield label, row["ratio"], row["values"]


def draw(report):
    bars = list(chosen(report))
    height = TOP + STEP * len(bars) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" role="img">',
        f"<title>{OURS} as a multiple of {THEIRS}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-weight="bold">{OURS} / {THEIRS}, medians of one run</text>',
        f'<text x="{LEFT + UNIT}" y="38" text-anchor="middle" fill="#666">1</text>']
    for number, (label, ratio, values) in enumerate(bars):
        y = TOP + STEP * number
        length = min(ratio, 3) * UNIT
        figures = f"{ratio:.2f}   ({shown(values[COLUMNS[0]])} / {shown(values[COLUMNS[1]])})"
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{label}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{length:.0f}" height="18" fill="#36c"/>',
            f'<text x="{LEFT + length + 6:.0f}" y="{y + 13}">{figures}</text>']
    x = LEFT + UNIT
    parts += [f'<line x1="{x}" y1="42" x2="{x}" y2="{height - 8}" stroke="#666" '
              'stroke-dasharray="3 3"/>', "</svg>"]
    return "\n".join(parts) + "\n"
