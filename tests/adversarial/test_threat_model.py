"""The page about cheating tells what is played here, and there is enough of it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .catalogue import SANDBOXES, all_of

if TYPE_CHECKING:
    from .catalogue import Trick


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    script = request.config.rootpath / "scripts" / "threat_table.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run python scripts/threat_table.py"


def test_there_are_enough() -> None:
    for sandbox in SANDBOXES:
        assert sum(sandbox in trick.sandboxes for trick in all_of("tricks")) >= 30
        assert sum(sandbox in trick.sandboxes for trick in all_of("honest")) >= 15


@pytest.mark.parametrize(
    "trick", [*all_of("tricks"), *all_of("honest")], ids=lambda trick: trick.name
)
def test_a_folder_is_whole(trick: Trick) -> None:
    assert trick.plant.read_text().strip()
    assert trick.tries.endswith(".")
    assert trick.why.endswith(".")
    assert set(trick.sandboxes) <= set(SANDBOXES)
    assert set(trick.where) == set(trick.findings)
    assert trick.imports or "C0" not in trick.levels  # C0 of the base says nothing of it
    for level in trick.levels.values():
        assert re.search(r"\w{3}", level.reason)  # words, not just anything
    assert {path.name for path in trick.folder.iterdir()} == {"trick.toml", "plant.sh"}
