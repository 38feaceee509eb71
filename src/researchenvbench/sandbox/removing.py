"""Removing folders, whatever programs have made in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..errors import SandboxError
from ..process import STAND_ALONE_ENV, capture


def remove_tree(folder: Path) -> None:
    """Remove a folder, whatever programs have made in it; one that is absent is removed.

    Raises:
        SandboxError: something in it cannot be removed.
    """
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        # Overlay's own work folder has no permissions, and a stage can make such a one, or
        # one that is deeper than Python can go.
        for command in (["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
            finished, output = capture(
                [*command, str(folder)], cwd=Path("/"), env=STAND_ALONE_ENV, time_limit_s=3600
            )
        if not finished.ok:
            raise SandboxError(
                f"{folder}: cannot be removed: {output.decode(errors='replace').strip()[:500]}"
            ) from None
