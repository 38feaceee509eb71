"""The sandbox that needs no container engine: folders of this host.

It keeps attempts apart and stages fresh; it isolates nothing from a hostile agent, which
runs with the rights of whoever started the harness. An attempt's folder holds

    box/             what the agent sees: repo, home, tmp, cache, env, report.json
    stage/           a stage's own folders: work, out, tools, home, tmp, cache, assets
    scratch/         layers of open stage boxes, thrown away as they close
    frozen.json.gz   the list of the frozen files

A stage sees `box` at its own path, under a layer that takes all its changes (`namespace`);
where the host forbids that it runs in place, and says what earlier stages had changed.
"""

from __future__ import annotations

import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...attempt import Environment
from ...errors import SandboxError
from ...network_use import FULL
from .. import NO_ASSETS, Layout
from ..removing import remove_tree
from .box import LocalBox, LocalStageBox
from .ending import end_processes_of
from .manifest import Changes, Manifest, compare, take
from .stage import Fresh, judged, make_stage_folders, open_stage_box

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .. import Program

_FROZEN = "frozen.json.gz"


class LocalSandbox:
    """Attempts in folders of this host."""

    name = "local"
    reach = FULL

    def __init__(self, fresh: Fresh = "auto") -> None:
        self._fresh = fresh

    def check(self) -> None:
        """Folders can always be made."""

    def layout(self, attempt: Path) -> Layout:
        """The paths while building; a stage box's own layout differs in home, tmp and cache."""
        root = attempt.resolve() / "box"
        stage = attempt.resolve() / "stage"
        return Layout(
            root=root,
            repo=root / "repo",
            home=root / "home",
            tmp=root / "tmp",
            cache=root / "cache",
            env=root / "env",
            report=root / "report.json",
            work=stage / "work",
            out=stage / "out",
            tools=stage / "tools",
            assets=stage / "assets",
        )

    def resumes(self, attempt: Path, key: str) -> bool:  # noqa: ARG002 - as the protocol says
        """Never: what a build runs ends with the harness."""
        return False

    def discard(self, attempt: Path) -> None:
        """Remove the box and the list of its files."""
        (attempt / _FROZEN).unlink(missing_ok=True)
        remove_tree(self.layout(attempt).root)

    @contextmanager
    def build_box(
        self,
        attempt: Path,
        source: Path,
        *,
        key: str = "",  # noqa: ARG002 - every build is a new one
        gpus: Sequence[str] = (),  # noqa: ARG002 - chosen by variables on a host
        program: Program | None = None,
    ) -> Iterator[LocalBox]:
        """A new box for the agent, with its own copy of `source`; an older one is removed."""
        layout = self.layout(attempt)
        try:
            (attempt / _FROZEN).unlink(missing_ok=True)
            remove_tree(layout.root)
            make_stage_folders(attempt.resolve() / "stage")
            for folder in (layout.root, layout.home, layout.tmp, layout.cache):
                folder.mkdir(parents=True)
            _copy(source, layout.repo)
        except OSError as error:
            raise SandboxError(f"{attempt}: the box cannot be made: {_sentence(error)}") from error
        yield LocalBox(layout, program=program.folder if program else None)

    def freeze(self, attempt: Path) -> Environment:
        """End what the build left running, and list every file of the box."""
        root = self.layout(attempt).root
        if not root.is_dir():
            raise SandboxError(f"{attempt}: nothing has been built here")
        ended = end_processes_of(root)
        manifest = take(root)
        try:
            manifest.save(attempt / _FROZEN)
        except OSError as error:
            raise SandboxError(
                f"{attempt / _FROZEN}: cannot be written: {_sentence(error)}"
            ) from error
        return self._environment(manifest, ended)

    def environment(self, attempt: Path) -> Environment:
        """The state as it is now; only what looks different from the frozen one is read."""
        frozen = Manifest.load(attempt / _FROZEN)
        return self._environment(take(self.layout(attempt).root, frozen), ())

    def holds(self, attempt: Path) -> bool:
        """Whether the box and the list of its files are there."""
        return (attempt / _FROZEN).is_file() and self.layout(attempt).root.is_dir()

    def changes(self, attempt: Path) -> Changes:
        """How the box differs from its frozen state."""
        frozen = Manifest.load(attempt / _FROZEN)
        return compare(frozen, take(self.layout(attempt).root, frozen))

    def _environment(self, manifest: Manifest, ended: tuple[str, ...]) -> Environment:
        return Environment(
            sandbox=self.name,
            digest=manifest.digest,
            files=manifest.files,
            size_bytes=manifest.size_bytes,
            digest_s=manifest.seconds,
            ended_processes=ended,
        )

    @contextmanager
    def stage_box(
        self,
        attempt: Path,
        *,
        network: bool,
        gpus: Sequence[str],  # noqa: ARG002 - the environment alone chooses GPUs on a host
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> Iterator[LocalStageBox]:
        """A box that starts from the frozen state and is thrown away when it closes."""
        if not (attempt / _FROZEN).exists():
            raise SandboxError(f"{attempt}: no environment has been frozen here")

        def changed() -> tuple[str, ...]:
            return judged(self.changes(attempt))

        layout = self.layout(attempt).of_stage(attempt.resolve() / "stage")
        with open_stage_box(
            attempt.resolve(),
            layout,
            [layout.root],
            changed,
            network=network,
            fresh=self._fresh,
            assets=assets,
        ) as box:
            yield box


def _copy(source: Path, target: Path) -> None:
    """Copy a tree with modes, times and links as they are; special files are left out."""

    if target.resolve().is_relative_to(source.resolve()):
        raise SandboxError(
            f"{target}: lies in the source {source} that is to be copied there",
            advice="choose a folder for results that lies elsewhere",
        )

    def special(folder: str, names: list[str]) -> list[str]:
        found = []
        for name in names:
            mode = Path(folder, name).lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                found.append(name)
        return found

    try:
        shutil.copytree(source, target, symlinks=True, ignore=special)
    except shutil.Error as error:
        copied, _, why = error.args[0][0]
        raise SandboxError(f"{copied}: cannot be copied into the box: {why}") from error


def _sentence(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
