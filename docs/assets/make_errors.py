"""docs/assets/errors.svg, the picture of the README, from the table of docs/explanation/synthetic.md, which
benchmarks/synthetic_peers.py measures: python docs/assets/make_errors.py
"""

from __future__ import annotations

import html
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
PICTURE = Path(__file__).with_name("errors.svg")
COLOURS = {"any attacker": "#1f5fa8", "rows, delta 1e-9": "#7a7a7a", "frequencies only": "#b9c7d8"}
LEGEND = {
    "any attacker": "promised against any attacker",
    "rows, delta 1e-9": "synthetic data of the field (differential privacy for whole rows, the same epsilon)",
    "frequencies only": "promised against who knows frequencies only",
}
LEFT, STEP, WIDE, FIRST = 250, 26, 360, 74


def rows() -> list[tuple[str, str, float]]:
    """Name, promise, and error of counts of .5 % of the rows and more with two or three conditions."""
    page = (DOCS / "explanation" / "synthetic.md").read_text("utf-8")
    table = re.search(r"^\| \| promise \| pool 1 .*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert table is not None
    made = []
    for line in table.group(0).splitlines()[2:]:
        if not line.startswith("| "):
            continue
        name, promise, _, pool, _ = (
            cell.strip().replace("*", "").replace("`", "") for cell in line.strip("| ").split("|")
        )
        if promise in COLOURS and name != "its model":
            made.append(
                (re.sub(r" \(synthetic\): rows counted", " releases", name), promise, float(pool.split("/")[1]))
            )
    return sorted(made, key=lambda row: row[2])


def picture() -> str:
    """The bars, with the figure beside each; what is longer than the picture is cut and says so."""
    shown = rows()
    longest = 0.4
    height = FIRST + STEP * len(shown) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 90} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Mean relative error of counts: learned releases beside other mechanisms and synthetic data</title>",
        f'<rect width="{LEFT + WIDE + 90}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (promise, words) in enumerate(LEGEND.items()):
        y = 18 + 18 * place
        lines.append(f'<rect x="10" y="{y - 10}" width="12" height="12" fill="{COLOURS[promise]}"/>')
        lines.append(f'<text x="28" y="{y}" fill="#333333">{words}</text>')
    for place, (name, promise, error) in enumerate(shown):
        y, length = FIRST + STEP * place, WIDE * min(error, longest) / longest
        beyond = " »" if error > longest else ""
        lines.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end" fill="#111111">{html.escape(name)}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="17" fill="{COLOURS[promise]}"/>')
        lines.append(
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 13}" fill="#111111">{100 * error:.2g} %{beyond}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
