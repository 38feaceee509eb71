"""A box that is the user's own folder: what `reb build` works in.

Nothing is copied and nothing is thrown away: the environment that is made there is the one
that the user keeps.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...owner import own_folder
from .. import Layout
from ..removing import remove_tree
from .box import LocalBox

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def user_box(repo: Path, prefix: Path) -> Iterator[LocalBox]:
    """A box over the folder `repo`, with the environment at `prefix`.

    The cache is the user's own, so that what was downloaded once is at hand; home and
    temporary folder are made for the build and removed after it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with own_folder("build", remove=remove_tree) as scratch:
        layout = Layout(
            root=repo,
            repo=repo,
            home=scratch / "home",
            tmp=scratch / "tmp",
            cache=cache,
            env=prefix,
            report=scratch / "report.json",
            work=scratch / "work",
            out=scratch / "out",
            tools=scratch / "tools",
            assets=scratch / "assets",
        )
        for folder in (layout.home, layout.tmp, layout.work, layout.out, layout.tools):
            folder.mkdir()
        cache.mkdir(parents=True, exist_ok=True)
        yield LocalBox(layout)
