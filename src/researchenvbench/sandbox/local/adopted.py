"""A stage box over folders that are a user's own, for judging what no build of ours made."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import SandboxError
from .. import NO_ASSETS, Layout
from .manifest import Manifest, compare, take
from .stage import Fresh, judged, open_stage_box

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .box import LocalStageBox

#: How a folder was when its first box was opened, for those that run in place; a folder that
#: its owner changes between two verifications is not to be taken for changed by a stage.
_first_seen: dict[tuple[Path, Path], Manifest] = {}


@contextmanager
def adopted_box(
    repo: Path,
    prefix: Path | None,
    scratch: Path,
    *,
    network: bool,
    fresh: Fresh = "auto",
    assets: Mapping[str, Path] = NO_ASSETS,
) -> Iterator[LocalStageBox]:
    """A stage box over a user's own folder and environment, at their own paths.

    Args:
        repo: The repository; nothing in it is changed where the host allows a layer.
        prefix: The interpreter's environment, likewise; None, or one of the system, is
            left as it is.
        scratch: An own folder, outside of the other two, for everything that stages write.
        network: Whether programs share the host's network.
        fresh: As for `LocalSandbox`.
        assets: As for every sandbox.

    Raises:
        SandboxError: a folder is absent, or `scratch` lies in one of the others.
    """
    repo, scratch = repo.resolve(), scratch.resolve()
    folders = [repo]
    if prefix is not None and _is_environment(prefix.resolve()):
        folders.append(prefix.resolve())
    folders = [f for f in folders if not any(f != g and f.is_relative_to(g) for g in folders)]
    for folder in folders:
        if not folder.is_dir():
            raise SandboxError(f"{folder}: is not a folder")
        if scratch.is_relative_to(folder):
            raise SandboxError(
                f"{scratch}: lies in {folder}, which is to be judged",
                advice="choose a folder for results that lies elsewhere",
            )
    scratch.mkdir(parents=True, exist_ok=True)
    stage = scratch / "stage"
    layout = Layout(
        root=repo,
        repo=repo,
        home=stage,
        tmp=stage,
        cache=stage,
        env=prefix or repo / ".venv",
        report=stage / "report.json",
        work=stage / "work",
        out=stage / "out",
        tools=stage / "tools",
        assets=stage / "assets",
    ).of_stage(stage)

    def changed() -> tuple[str, ...]:
        """What differs from how the folders were when they were first seen."""
        differing: list[str] = []
        for folder in folders:
            now = take(folder, contents=False)
            first = _first_seen.setdefault((scratch, folder), now)
            differing += [str(folder / path) for path in judged(compare(first, now))]
        return tuple(differing)

    with open_stage_box(
        scratch, layout, folders, changed, network=network, fresh=fresh, assets=assets
    ) as box:
        yield box


def _is_environment(prefix: Path) -> bool:
    """A virtual or conda environment, and not the system's Python."""
    return (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir()
