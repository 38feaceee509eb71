"""`verify` for one environment: an attempt of a run, or any folder with any interpreter."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attempt import AttemptStatus, Level, Sizes, now
from ..building import REPORT_LIMIT_BYTES, hardware_shown, parse_report
from ..errors import HostError, RebError, SandboxError
from ..places import default_cache
from ..sandbox import NO_ASSETS
from ..sandbox.containers.in_use import using_image
from ..sandbox.host_environment import host_environment
from ..sandbox.local.adopted import adopted_box
from ..sandbox.local.namespace import namespace_support
from ..schema import suggest_path
from ..source import fetch_source, snapshot_in_place
from ..task import FolderSource
from ..verify.imports import collect, read_folder
from ..verify.pyramid import Choice, with_interpreter
from ..verify.pyramid import verify as judge
from ..verify.subject import Subject
from .assets import stages_to_run, with_assets
from .job import AttemptRun
from .records import judged, new_record
from .store import is_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..assets import Choice as Assets
    from ..attempt import Record, Report
    from ..sandbox import HostEnvironment, StageBox
    from ..source import Snapshot
    from ..task import Task

FRAMEWORKS = ("torch", "jax", "tensorflow")


@dataclass(frozen=True)
class ChosenPython:
    """The interpreter to judge, and what named it."""

    path: str
    named_by: str


def choose_python(
    repo: Path, explicit: str | None, report_python: str | None, environ: dict[str, str]
) -> ChosenPython:
    """The interpreter to judge: `--python`, else the report's, else an active or local one.

    An active environment that reb itself runs from is passed over: it is active so that `reb`
    is found, and was not made for `repo`.

    Raises:
        RebError: nothing names one.
    """
    if explicit:
        return ChosenPython(str(_named(explicit)), "--python")
    if report_python:
        return ChosenPython(report_python, "the report")
    local = repo / ".venv" / "bin" / "python"
    own = ""  # why an active environment was passed over
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable)
        if not prefix:
            continue
        if _is_same(Path(prefix), Path(sys.prefix)):
            own = own or f"${variable} is reb's own environment"
            continue
        other = local.exists() and not _is_same(Path(prefix), repo / ".venv")
        passed_over = f"; {repo / '.venv'} was passed over" if other else ""
        return ChosenPython(str(Path(prefix) / "bin" / "python"), f"${variable}{passed_over}")
    if local.exists():
        return ChosenPython(str(local), f"{repo / '.venv'}{f'; {own}' if own else ''}")
    active = "no active environment but reb's own" if own else "no active environment"
    raise RebError(
        f"no interpreter to judge: no --python, no report, {active}, no {local}",
        advice=f"reb verify {repo} --python PATH/bin/python, or reb build {repo} to make one",
    )


def check_python(explicit: str) -> None:
    """See that `--python` names a program of this host: a typo is no fault of an environment.

    Raises:
        RebError: it names none.
    """
    path = _named(explicit)
    if path.is_file() and os.access(path, os.X_OK):
        return
    advice = "give an interpreter, such as VENV/bin/python, or the folder of an environment"
    if path.is_dir():
        raise RebError(f"--python {explicit}: {path} is a folder without bin/python", advice=advice)
    if path.exists():
        raise RebError(f"--python {explicit}: {path} is no file that can be run", advice=advice)
    raise RebError(f"--python {explicit}: {suggest_path(path)}", advice=advice)


def _named(explicit: str) -> Path:
    """The interpreter that `--python` means, links and all: the path decides the prefix."""
    path = Path(explicit).expanduser()
    if path.is_dir() and (path / "bin" / "python").exists():
        path = path / "bin" / "python"
    return Path(os.path.abspath(path))  # noqa: PTH100  # keeps links


def _check_answers(subject: Subject, picked: ChosenPython) -> None:
    """Whatever the user names must be a Python, before anybody is blamed for its environment."""
    asked = dataclasses.replace(subject, say=lambda *_, **__: None)  # said once is enough
    with suppress(SandboxError, HostError):  # the verdicts say so
        asked = with_interpreter(asked, picked.path)
    if asked.interpreter is None and asked.interpreter_error:
        raise RebError(
            f"--python: {asked.interpreter_error}",
            advice="give an interpreter, such as VENV/bin/python, or the folder of an environment",
        )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def verify(
    path: str | Path,
    python: str | None = None,
    *,
    task: Task | None = None,
    report: str | Path | None = None,
    levels: Sequence[Level] = tuple(Level),
    fail_fast: bool = False,
    repeats: int = 1,
    out: Path | None = None,
    in_place: bool = False,
    assets: Assets | None = None,
    say: Callable[..., None] = lambda *_, **__: None,
    chosen: Callable[[ChosenPython], None] = lambda _: None,
) -> Record:
    """Judge an environment and return its record; what is judged is not changed.

    `path` is an attempt of a run (its environment as it is now), or a folder with a
    repository. `task` gives the folder its stages. `out` is where logs and the record go.
    `in_place` allows stages to run in the folder itself where this host allows no layers.
    `assets` says whether they read originals or stand-ins; default: `auto`, and for an attempt
    as its run was asked for.

    Raises:
        RebError: there is nothing to judge, or it cannot be judged here.
    """
    folder = Path(path).absolute()
    asked = _Asked(
        choice=Choice(levels, fail_fast, repeats),
        results=(out or new_results_folder(folder)).absolute(),
        assets=assets,
        say=say,
        chosen=chosen,
    )
    if is_attempt(folder):
        if task is not None or report is not None:
            raise RebError(
                f"{folder} is an attempt of a run, which has its own task and report",
                advice="leave out the task and the report, or give a repository's folder",
            )
        return _verify_attempt(folder, python, asked)
    if not folder.is_dir():
        raise RebError(f"there is no folder {folder}", advice="give the repository's folder")
    asked.results.mkdir(parents=True, exist_ok=True)
    if task is not None and not in_place:
        _refuse_in_place(asked.results)
    return _verify_folder(folder, python, task, report, asked)


def _refuse_in_place(results: Path) -> None:
    """An entry point may write where it likes; without a layer that is the user's folder."""
    kind, _, why = namespace_support(results)
    if kind != "overlay":
        raise HostError(
            f"this host allows no layer over the folder, so the entry point would run in it and "
            f"could change it ({why})",
            advice="--in-place runs it all the same; or give a copy of the folder",
        )


@dataclass(frozen=True)
class _Asked:
    """How a verification was asked for."""

    choice: Choice
    results: Path  #: for logs and record
    assets: Assets | None
    say: Callable[..., None]
    chosen: Callable[[ChosenPython], None]


def _verify_attempt(folder: Path, python: str | None, asked: _Asked) -> Record:
    attempt = AttemptRun(folder)
    attempt.say = asked.say
    done = attempt.folder.load_build()
    if done is None or done.environment is None:
        raise RebError(
            f"{folder}: nothing was built here", advice=f"reb job {folder} --phase build"
        )
    subject = attempt.subject(
        asked.results,
        attempt.source(),
        stages=stages_to_run(attempt.task, asked.choice.levels),
        assets=asked.assets,
    )
    reported = subject.report.python_path if subject.report else None
    picked = choose_python(folder, python, reported, {}) if python or reported else None
    if picked is not None:
        asked.chosen(picked)
    with using_image(done.environment.image) if done.environment.image else nullcontext():
        judgement = judge(
            subject,
            picked.path if picked else None,
            frameworks=attempt.task.frameworks,
            hardware=hardware_shown(done),
            choice=asked.choice,
        )
        record = attempt.record(done, attempt.sandbox.environment(folder), judgement)
    record.save(asked.results / "record.json")
    return record


def _verify_folder(
    folder: Path,
    python: str | None,
    task: Task | None,
    report_file: str | Path | None,
    asked: _Asked,
) -> Record:
    started = now()
    report, report_error = report_of(report_file)
    reported = report.python_path if report else None
    if python:
        check_python(python)
    picked = choose_python(folder, python, reported, dict(os.environ))
    asked.chosen(picked)
    host = host_environment()
    snapshot = snapshot_in_place(folder)
    # Of an entry point that the user named, the folder itself is the source.
    judge_edits = task is not None and not _is_folder(task, folder)
    pristine = snapshot
    if task is not None and judge_edits:
        pristine = fetch_source(task, installs=host.installs)
    subject = adopted_subject(
        folder,
        picked.path,
        asked.results,
        host,
        pristine,
        task=task,
        report=report,
        report_error=report_error,
        report_due=report_file is not None,
        judge_edits=judge_edits,
        say=asked.say,
    )
    if python:
        _check_answers(subject, picked)
    if task is not None:
        stages = stages_to_run(task, asked.choice.levels)
        subject = with_assets(subject, stages, asked.assets or "auto")
    judgement = judge(
        subject,
        picked.path,
        frameworks=task.frameworks if task else imported_frameworks(snapshot),
        choice=asked.choice,
    )
    record = judged(
        new_record(
            task or folder.name,
            host,
            source_digest=pristine.digest,
            agent="",
            sandbox="local",
            status=AttemptStatus.OK,
            started=started,
            python=picked.path,
            results={},
        ),
        judgement,
        Sizes(prefix_bytes=judgement.prefix_bytes),
    )
    record.save(asked.results / "record.json")
    return record


def adopted_subject(
    folder: Path,
    python: str,
    results: Path,
    host: HostEnvironment,
    snapshot: Snapshot,
    **facts: Any,
) -> Subject:
    """A folder and an interpreter that no build of ours made, as what is judged.

    Args:
        folder: The repository.
        python: The interpreter, whose environment is the folder above its own.
        results: For logs, and for the boxes' scratch.
        host: What this host hands to boxes.
        snapshot: The source as it should be.
        facts: The other fields of a `Subject`.
    """
    prefix = Path(python).parent.parent

    @contextmanager
    def open_box(
        *,
        network: bool = False,
        gpus: Sequence[str] = (),  # noqa: ARG001  # chosen by variables on a host
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> Iterator[StageBox]:
        scratch = results / "boxes"
        with adopted_box(folder, prefix, scratch, network=network, assets=assets) as box:
            yield box

    return Subject(folder=results, open_box=open_box, host=host, snapshot=snapshot, **facts)


def report_of(path: str | Path | None) -> tuple[Report | None, str | None]:
    """A report that the user names; (None, None) where he names none."""
    if path is None:
        return None, None
    try:
        if not Path(path).is_file():
            raise RebError(f"{path}: is not a file", advice="give the report's JSON file")
        with Path(path).open("rb") as stream:
            text = stream.read(REPORT_LIMIT_BYTES + 1)
            size_bytes = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise RebError(f"{path}: cannot be read: {error.strerror}") from error
    if len(text) > REPORT_LIMIT_BYTES:
        return None, (
            f"the report has {size_bytes} bytes, more than the {REPORT_LIMIT_BYTES} that are read"
        )
    return parse_report(text)


def _is_folder(task: Task, folder: Path) -> bool:
    source = task.source
    return isinstance(source, FolderSource) and (task.folder / source.path).samefile(folder)


def imported_frameworks(snapshot: Snapshot) -> tuple[str, ...]:
    """Those of torch, jax and tensorflow that the tracked Python files import."""
    names = collect(read_folder(snapshot.tree, snapshot.tracked)).modules
    return tuple(name for name in FRAMEWORKS if name in names)


def new_results_folder(path: Path | None) -> Path:
    """A new folder for logs and record of one verification of `path`, or of an image (None).

    An attempt keeps its own; others lie in the cache, since nothing is written into what is
    judged.

    Raises:
        HostError: it cannot be made.
    """
    own = path.absolute() if path is not None and is_attempt(path) else default_cache()
    parent = own / "verifications"
    stamp = now().replace(":", "").replace("+0000", "Z")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{stamp}-", dir=parent))
    except OSError as error:
        cache = "" if is_attempt(own) else "set REB_CACHE to a folder that you may write, or "
        raise HostError(
            f"logs and record cannot be kept in {parent}: {error.strerror or error}",
            advice=f"{cache}name another folder for them by --out",
        ) from error
