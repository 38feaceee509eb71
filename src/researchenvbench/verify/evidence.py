"""Whether what a stage left behind shows that it did its work: one result an entry.

Evidence is text that was printed, the answer of a service, a file that this run made, and
the exit status. Each kind is judged here; what has to be opened or searched for it is the
business of `readers`, and what has to be asked inside the stage's box that of the probes.
An entry that does not hold says what was there instead. Whose fault a failure is, and what
the verdict of the stage becomes, is decided by `entrypoint`.
"""

from __future__ import annotations

import glob
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import EvidenceResult, Owner, Verdict
from ..errors import RefusedError, SandboxError
from ..evidence import (
    Bounds,
    ChangeEvidence,
    ExitEvidence,
    FileEvidence,
    HttpEvidence,
    OutputEvidence,
)
from ..task import fill
from . import asking
from .evidence_words import describe
from .readers import contained
from .readers.installed import INSTALL
from .readers.wording import SEEN_LIMIT, counted, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evidence import Evidence
    from ..sandbox import Collected, Finished, StageBox
    from ..task import Stage, Task

__all__ = ["describe", "formats", "judge"]

_COLLECTED_FILES = 200
_TOLD = 4


def judge(
    stage: Stage,
    finished: Finished,
    box: StageBox,
    logs: Mapping[str | None, Path],
    values: Mapping[str, str],
    into: Path,
) -> list[EvidenceResult]:
    """Judge every entry of a stage, and its exit status even where no entry names it.

    `logs` has the log of the command under None and that of each service under its name.
    `values` are those of the placeholders. Copies of the files that were judged, and what
    the probes said, are left in `into`. Services must still be running.
    """
    entries: list[Evidence] = list(stage.evidence)
    if not any(isinstance(entry, ExitEvidence) for entry in entries):
        entries.insert(0, ExitEvidence(kind="exit", code=stage.expected_exit))
    results = []
    for number, entry in enumerate(entries, 1):
        folder = into / f"evidence-{number}"
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier run of the same stage
        match entry:
            case ExitEvidence():
                result = _judge_exit(entry, finished)
            case OutputEvidence():
                result = _judge_output(entry, finished, logs)
            case HttpEvidence():
                result = asking.judge_http(entry, box, values, folder)
            case FileEvidence():
                result = _judge_file(entry, stage, box, values, folder)
            case ChangeEvidence():
                result = _judge_change(entry, stage, box, values, folder)
        results.append(result)
    return results


def formats(task: Task) -> list[str]:
    """The formats of files that some stage's evidence names, each once."""
    named = {
        str(entry.format)
        for stage in task.stages.values()
        for entry in stage.evidence
        if isinstance(entry, FileEvidence | ChangeEvidence)
    }
    return sorted(named)


def _result(
    entry: Evidence, verdict: Verdict, seen: str, owner: Owner | None = None
) -> EvidenceResult:
    return EvidenceResult(
        entry=describe(entry), verdict=verdict, owner=owner, seen=shorten(seen, SEEN_LIMIT)
    )


# --- exit status -----------------------------------------------------------------------


def _judge_exit(entry: ExitEvidence, finished: Finished) -> EvidenceResult:
    if finished.start_error is not None:
        seen = f"it could not be started: {finished.start_error}"
    elif finished.timed_out:
        seen = f"still running at its time limit, after {finished.seconds:.0f} s"
    elif finished.signal is not None:
        memory = "; the kernel ended it for want of memory" if finished.out_of_memory else ""
        seen = f"ended by {finished.signal}{memory}"
    else:
        seen = f"exit status {finished.exit_code}"
        if finished.exit_code == entry.code:
            return _result(entry, Verdict.PASSED, seen)
    return _result(entry, Verdict.FAILED, seen)


# --- output ----------------------------------------------------------------------------


def _judge_output(
    entry: OutputEvidence, finished: Finished, logs: Mapping[str | None, Path]
) -> EvidenceResult:
    log = logs.get(entry.service)
    if log is None or not log.is_file():
        return _result(entry, Verdict.FAILED, "it was not running, so it printed nothing")
    groups = {name: bounds.model_dump() for name, bounds in entry.groups.items()}
    try:
        search = contained.search_log(log, entry.pattern, groups)
    except contained.NoAnswer as error:
        seen = f"the search of {log.stat().st_size} bytes {error}; a simpler pattern is needed"
        return _result(entry, Verdict.INCONCLUSIVE, seen, Owner.TASK)
    # The log of a service is still being written: what was left out of it stands in it.
    dropped = finished.log_bytes_dropped if entry.service is None else search["left_out_bytes"]
    matches = search["matches"]
    seen = _seen_lines(matches, search)
    if matches < entry.at_least:
        seen += _note(search["long_lines"], dropped)
        if dropped:
            return _result(entry, Verdict.INCONCLUSIVE, seen, Owner.UNKNOWN)
        return _result(entry, Verdict.FAILED, seen)
    if search["faults"]:
        seen = f"{'; '.join(search['faults'])}; {seen}"
        return _result(entry, Verdict.FAILED, seen)
    if dropped and entry.groups:
        # Bounds hold for every match, also for those that were left out.
        seen += _note(0, dropped)
        return _result(entry, Verdict.INCONCLUSIVE, seen, Owner.UNKNOWN)
    return _result(entry, Verdict.PASSED, seen)


def _seen_lines(matches: int, search: Mapping[str, object]) -> str:
    if not matches:
        tail = search["tail"]
        lines = " | ".join(tail) if isinstance(tail, list) else ""
        said = f"its last lines: {lines}" if lines else "nothing was printed"
        return f"no line of {search['lines']} matches; {said}"
    text = f"{counted(matches, 'line')}, the last: {search['last_match']}"
    numbers = search["numbers"]
    if isinstance(numbers, dict):
        text += "".join(f"; {name}: {words}" for name, words in numbers.items())
    return text


def _note(long_lines: int, dropped: int) -> str:
    text = ""
    if long_lines:
        text += f"; {counted(long_lines, 'line')} were too long to be searched to the end"
    if dropped:
        text += f"; {dropped} bytes of the output were left out of its log and not searched"
    return text


# --- files -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Files:
    """What became of the files that match a pattern: told by their path in the box."""

    good: dict[Path, str] = field(default_factory=dict)
    refused: dict[Path, str] = field(default_factory=dict)
    missing: dict[Path, str] = field(default_factory=dict)  #: the distribution that opens it
    numbers: dict[Path, Mapping[str, Sequence[str]]] = field(default_factory=dict)  #: of the good

    def verdict(self, entry: Evidence, at_least: int = 1) -> EvidenceResult:
        """Whether there are enough good ones."""
        if len(self.good) >= at_least:
            return _result(entry, Verdict.PASSED, _told(self.good))
        if len(self.good) + len(self.missing) >= at_least:
            needed = ", ".join(sorted(set(self.missing.values())))
            seen = (
                f"{counted(len(self.missing), 'file')} of this run cannot be opened here without "
                f"{needed}; in reb's checkout: {INSTALL}"
            )
            return _result(entry, Verdict.INCONCLUSIVE, seen, Owner.HOST)
        seen = f"{len(self.good)} of {at_least}; {_told(self.refused)}"
        return _result(entry, Verdict.FAILED, seen)


def _judge_file(
    entry: FileEvidence, stage: Stage, box: StageBox, values: Mapping[str, str], folder: Path
) -> EvidenceResult:
    literal = {name: glob.escape(value) for name, value in values.items()}
    pattern = _absolute(entry.pattern, stage, literal)
    wanted = entry.model_dump(mode="json", exclude={"kind", "pattern", "at_least", "min_bytes"})
    limit = max(_COLLECTED_FILES, entry.at_least)
    opened = _open(entry, pattern, box, folder, wanted, limit=limit, min_bytes=entry.min_bytes)
    return opened.verdict(entry, entry.at_least) if isinstance(opened, _Files) else opened


def _judge_change(
    entry: ChangeEvidence, stage: Stage, box: StageBox, values: Mapping[str, str], folder: Path
) -> EvidenceResult:
    literal = {name: glob.escape(value) for name, value in values.items()}
    wanted = {"format": entry.format, "numeric": {n: Bounds().model_dump() for n in entry.arrays}}
    times = []
    for name, pattern in (("since", entry.since), ("pattern", entry.pattern)):
        absolute = _absolute(pattern, stage, literal)
        opened = _open(entry, absolute, box, folder / name, wanted, limit=_COLLECTED_FILES)
        if not isinstance(opened, _Files):
            return opened
        result = opened.verdict(entry)
        if result.verdict is not Verdict.PASSED:
            return result
        times.append(opened)
    before, after = times
    faults = [
        f"{shorten(later.name)} and {shorten(earlier.name)}: array {name!r} {fault}"
        for later, now in after.numbers.items()
        for earlier, then in before.numbers.items()
        for name in entry.arrays
        if (fault := _unchanged(then[name], now[name]))
    ]
    told = "; ".join(faults[:_TOLD]) if faults else _told(after.good)
    return _result(entry, Verdict.FAILED if faults else Verdict.PASSED, told)


def _unchanged(then: Sequence[str], now: Sequence[str]) -> str:
    """Why two fingerprints do not show that an array changed, or nothing."""
    if then[0] != now[0]:
        return f"cannot be compared: {now[0]}, before {then[0]}"
    return "did not change" if then[1] == now[1] else ""


def _absolute(pattern: str, stage: Stage, literal: dict[str, str]) -> str:
    """The pattern with its placeholders filled in; a relative one starts where the command did."""
    return str(Path(fill(stage.folder, literal)) / fill(pattern, literal))


def _open(
    entry: Evidence,
    pattern: str,
    box: StageBox,
    folder: Path,
    wanted: Mapping[str, object],
    *,
    limit: int,
    min_bytes: int = 1,
) -> _Files | EvidenceResult:
    """Take the files that match out of the box and open them; a result where there are none."""
    folder.mkdir(parents=True)
    try:
        collected = box.collect(pattern, folder, limit=limit)
    except RefusedError as error:  # the run's doing, and not the host's
        return _result(entry, Verdict.FAILED, str(error.args[0]))
    except SandboxError as error:
        return _result(entry, Verdict.INCONCLUSIVE, str(error.args[0]), Owner.HOST)
    if not collected:
        return _result(entry, Verdict.FAILED, asking.what_is_there(pattern, box, folder))
    files = _Files()
    files.refused.update({f.inside: why for f in collected if (why := _refusal(f, min_bytes))})
    to_open = [file for file in collected if file.inside not in files.refused]
    for file, opened in zip(
        to_open, contained.open_files([file.copy for file in to_open], wanted), strict=True
    ):
        if opened.missing is not None:
            files.missing[file.inside] = opened.missing
        elif opened.faults:
            what = f" ({opened.what})" if opened.what else ""
            files.refused[file.inside] = f"{'; '.join(opened.faults)}{what}"
        else:
            files.good[file.inside] = f"{opened.what}, {file.size_bytes} bytes"
            files.numbers[file.inside] = opened.fingerprints
    return files


def _refusal(file: Collected, min_bytes: int) -> str:
    """Why a file does not count that is not even opened, or nothing."""
    if not file.fresh:
        return "was there before this run"
    if file.size_bytes < min_bytes:
        return f"has {file.size_bytes} bytes, at least {min_bytes} wanted"
    return ""


def _told(files: Mapping[Path, str]) -> str:
    told = [f"{shorten(path.name)}: {words}" for path, words in list(files.items())[:_TOLD]]
    more = len(files) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")
