"""What a tree shows: is it Python, does it name a paper, need GPUs, distribute or have kernels?

Read from git's objects, without a checkout; nothing of it is executed. A copy may lack files:
large ones are not fetched for candidates, and what is not there is not read.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..verify.imports import EXCLUDED_FOLDERS
from ..verify.objects import contents_of, entries_of, sizes_of
from .criteria import Criterion, Evidence, Finding, Standing
from .languages import judge_language
from .lines import decode
from .papers import is_named_here, judge_papers
from .rules import is_read, signs_by_name, signs_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..verify.objects import Entry
    from .rules import Sign

#: Larger files are data, whatever their name.
LARGEST_FILE_BYTES = 1_000_000
#: What is held of a tree at a time.
_AT_A_TIME_BYTES = 32_000_000
_MOST = 3
#: Folders whose code is somebody else's, or serves to try the repository's own.
_ELSEWHERE = frozenset(
    {"third_party", "third-party", "thirdparty", "3rdparty", "vendor", "vendors", "external"}
    | {"extern", "submodules", "deps"}
)
_ASIDE = frozenset({"test", "tests", "testing", "benchmark", "benchmarks", "ci", ".github"})

_NOT_SEEN = {
    Criterion.GPU: "no file names CUDA, a GPU's device, or a package for GPUs",
    Criterion.DISTRIBUTED_OR_KERNELS: "no file distributes work, and there is no kernel of its own",
}


class Tree:
    """The files of a commit that a selection reads."""

    def __init__(self, git_folder: Path, commit: str) -> None:
        """The commit's files, as far as the git directory holds them.

        Raises:
            SourceError: git does not have the commit, or it is damaged.
            HostError: git is not installed.
        """
        self._folder = git_folder
        entries = [entry for entry in entries_of(git_folder, commit) if entry.is_file]
        #: Of build outputs and tool caches nothing counts, as in C0.
        self.entries = [e for e in entries if EXCLUDED_FOLDERS.isdisjoint(_folders(e.path))]
        self.sizes = sizes_of(git_folder, self.entries)

    def texts(self, paths: Sequence[str]) -> dict[str, str]:
        """The texts of these files, as far as they are there and not too large."""
        wanted = [entry for entry in self.entries if entry.path in paths]
        return {path: decode(content) for path, content in self._contents(wanted)}

    def readable(self) -> Iterator[tuple[str, bytes]]:
        """Path and content of the files in which a rule can find something."""
        return self._contents([entry for entry in self.entries if is_read(entry.path)])

    def _contents(self, wanted: Sequence[Entry]) -> Iterator[tuple[str, bytes]]:
        batch: list[Entry] = []
        held = 0
        for entry in wanted:
            size = self.sizes.get(entry.path)
            if size is None or size > LARGEST_FILE_BYTES:
                continue
            batch.append(entry)
            held += size
            if held >= _AT_A_TIME_BYTES:
                yield from contents_of(self._folder, batch).items()
                batch, held = [], 0
        if batch:
            yield from contents_of(self._folder, batch).items()


def judge_tree(tree: Tree) -> list[Finding]:
    """The answers to the criteria that a tree shows.

    Raises:
        SourceError: git cannot read it.
        HostError: git is not installed.
    """
    named = [entry.path for entry in tree.entries if is_named_here(entry.path)]
    signs = [sign for entry in tree.entries for sign in signs_by_name(entry.path)]
    for path, content in tree.readable():
        signs += signs_in(path, content)
    return [
        judge_language(tree.sizes),
        judge_papers(tree.texts(named)),
        _judge_signs(Criterion.GPU, signs),
        _judge_signs(Criterion.DISTRIBUTED_OR_KERNELS, signs),
    ]


def _judge_signs(criterion: Criterion, signs: Sequence[Sign]) -> Finding:
    """Met by one sign; the strongest of the repository's own code are its evidence."""
    found = sorted((sign for sign in signs if sign.criterion is criterion), key=_strength)
    if not found:
        return Finding(criterion=criterion, standing=Standing.NOT_MET, why=_NOT_SEEN[criterion])
    first = found[0].evidence
    files = {sign.evidence.file for sign in found}
    more = f", and {len(files) - 1} more files" if len(files) > 2 else ""
    return Finding(
        criterion=criterion,
        standing=Standing.MET,
        why=f"{first.says} ({first.place}{more})",
        evidence=_first_of_each_file(found),
        weak=found[0].weak or _aside(first.file) > 0,
    )


def _strength(sign: Sign) -> tuple[int, int, str, int]:
    evidence = sign.evidence
    return max(_aside(evidence.file), int(sign.weak)), sign.rule, evidence.file, evidence.line


def _aside(path: str) -> int:
    """0 of the repository's own code, 1 of its tests, 2 of what it took from elsewhere."""
    folders = {part.lower() for part in _folders(path)}
    if not _ELSEWHERE.isdisjoint(folders):
        return 2
    return 0 if _ASIDE.isdisjoint(folders) else 1


def _first_of_each_file(signs: Sequence[Sign]) -> tuple[Evidence, ...]:
    by_file: dict[str, Evidence] = {}
    for sign in signs:
        by_file.setdefault(sign.evidence.file, sign.evidence)
    return tuple(by_file.values())[:_MOST]


def _folders(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).parts[:-1]
