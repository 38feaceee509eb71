"""Writes the tables of docs/threat-model.md from the folders of tests/adversarial.

python scripts/threat_table.py           write them
python scripts/threat_table.py --check   exit with 1 when they are out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "threat-model.md"
sys.path.insert(0, str(ROOT))

from tests.adversarial.catalogue import SANDBOXES, all_of  # noqa: E402 - found by the line above

if TYPE_CHECKING:
    from tests.adversarial.catalogue import Trick

_WORDS = {"ok": "", "disqualified": "disqualified", "no_report": "no report"}


def page(text: str) -> str:
    """The page with its tables as the folders have them."""
    tables = {
        "tricks": _table(
            ["trick", "what it tries", "what it would gain", "finding", "consequence"],
            [
                [_name(trick), trick.tries, trick.why, _findings(trick), _consequence(trick)]
                for trick in all_of("tricks")
            ],
        ),
        "honest": _table(
            ["environment", "what is unusual", "why somebody has it"],
            [[_name(trick), trick.tries, trick.why] for trick in all_of("honest")],
        ),
    }
    for name, table in tables.items():
        begin, end = f"<!-- {name}: scripts/threat_table.py -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{PAGE}: the marks of the table {name} are gone")
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{table}{end}{after}"
    return text


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _name(trick: Trick) -> str:
    """The folder's name, with the sandbox where it is played in one alone."""
    alone = "" if set(trick.sandboxes) == set(SANDBOXES) else f" ({', '.join(trick.sandboxes)})"
    return f"`{trick.name}`{alone}"


def _findings(trick: Trick) -> str:
    return ", ".join(f"`{kind}`" for kind in trick.findings)


def _consequence(trick: Trick) -> str:
    words = [_WORDS[trick.status]] if trick.status != "ok" else []
    by_verdict: dict[str, list[str]] = {}
    for level, expected in sorted(trick.levels.items()):
        by_verdict.setdefault(expected.verdict, []).append(level)
    words += [f"{', '.join(levels)} {verdict}" for verdict, levels in by_verdict.items()]
    words += [f"claim `{claim}` {outcome}" for claim, outcome in trick.claims.items()]
    words += [trick.but] if trick.but else []
    return "; ".join(words) or ("listed, no effect" if trick.findings else "no effect")


def main() -> int:
    """Write or check the page."""
    text = PAGE.read_text(encoding="utf-8")
    new = re.sub(r"\n{3,}", "\n\n", page(text))
    if "--check" in sys.argv:
        return 0 if new == text else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
