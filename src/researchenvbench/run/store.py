"""Where a run keeps what happened: folders and files, and nothing else.

    RUN/run.json                          what was asked for
    RUN/attempts/TASK--N/job.json         one attempt: all that a phase needs to know
                        /events.jsonl     what it is doing, line by line
                        /build.json       the end of phase 1
                        /box/             the environment; never moves once the build began
                        /results/C0.json  one level's result, written when it ends
                        /logs/            what every program printed
                        /fetched.jsonl    what a build without another network fetched
                        /task.md, agent/  what an agent with a model was given, and its sessions
                        /model/           what passed between it and the model, counted
                        /transcript.jsonl what the agent did, step by step; layout.json: where
                        /record.json      the whole, for tables and for a second judgement
    RUN/superseded/                       records and logs of attempts that were made again
    RUN/index.html                        the table as a page

Every JSON file is written atomically and carries a schema version.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from ..agents.model import ModelChoice  # noqa: TC001  # pydantic needs it at run time
from ..assets import Choice  # noqa: TC001  # likewise
from ..attempt import RECORD_SCHEMA, BuildResult, Level, Record, StoredResult, builder
from ..errors import RecordError
from ..network_use import Reach
from ..sandbox.removing import remove_tree
from ..stored import Stored


class Setting(Stored):
    """Who builds, where, and within which limits: the same for all attempts of a run."""

    schema_version: int = Field(RECORD_SCHEMA, alias="schema")
    agent: str
    agent_options: dict[str, str] = Field(default_factory=dict)
    model: ModelChoice | None = Field(None, description="Of an agent that works with one.")
    sandbox: str = "local"
    sandbox_options: dict[str, Any] = Field(default_factory=dict)
    network: Reach = Field(Reach(), description="What builds reach.")
    keep: Literal["all", "failed", "none"] = "all"
    build_time_limit_s: float = 3600.0
    build_gpus: str = "none"
    assets: Choice = Field("auto", description="Originals, stand-ins, or what is at hand.")

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @property
    def builder(self) -> str:
        """Who builds: the agent, with its model where it has one."""
        return builder(self.agent, self.model.name if self.model else "")


class Job(Setting):
    """One attempt, as the command `reb job` gets it: enough to do the work alone."""

    suite: str
    task_folder: str
    task: str
    attempt: int = 1


@dataclass(frozen=True)
class AttemptFolder:
    """The files of one attempt."""

    path: Path

    @property
    def name(self) -> str:
        """Such as `TASK--1`."""
        return self.path.name

    @property
    def job_file(self) -> Path:
        """What is to be done."""
        return self.path / "job.json"

    @property
    def build_file(self) -> Path:
        """The end of phase 1."""
        return self.path / "build.json"

    @property
    def record_file(self) -> Path:
        """The whole."""
        return self.path / "record.json"

    @property
    def events_file(self) -> Path:
        """Progress."""
        return self.path / "events.jsonl"

    def result_file(self, level: Level) -> Path:
        """The result of one level."""
        return self.path / "results" / f"{level}.json"

    def load_build(self) -> BuildResult | None:
        """The end of phase 1, or None where it has not ended."""
        return BuildResult.load(self.build_file) if self.build_file.is_file() else None

    def load_result(self, level: Level) -> StoredResult | None:
        """The stored result of a level, or None where there is none that can be read."""
        path = self.result_file(level)
        if not path.is_file():
            return None
        try:
            return StoredResult.load(path)
        except RecordError:
            return None  # of another version, or damaged: it is made anew

    def load_record(self) -> Record | None:
        """The record, or None where there is none yet."""
        return Record.load(self.record_file) if self.record_file.is_file() else None

    def supersede(self) -> None:
        """Make room for building anew: records and logs are kept, the environment is not."""
        if not self.path.exists():
            return
        if self.build_file.exists() or self.record_file.exists():
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
            kept = self.path.parent.parent / "superseded" / f"{self.name}-{stamp}"
            kept.mkdir(parents=True)
            for name in ("job.json", "build.json", "record.json", "events.jsonl", *_TRANSCRIPTS):
                if (self.path / name).is_file():
                    shutil.copy2(self.path / name, kept / name)
            for name in ("logs", "results", "agent"):
                if (self.path / name).is_dir():
                    shutil.copytree(self.path / name, kept / name)
        for name in _OURS:
            place = self.path / name
            if place.is_dir() and not place.is_symlink():
                remove_tree(place)
            else:
                place.unlink(missing_ok=True)


#: What an agent did, in the form that all share and in its own, and what it was told.
_TRANSCRIPTS = ("transcript.jsonl", "layout.json", "trajectory.json", "task.md")

#: All that an attempt's folder has of ours, but for its job, earlier verifications, and what the
#: relay kept, whose tokens stay spent. What else lies there is somebody's, and stays.
_OURS = (
    "box",
    "stage",
    "scratch",
    "logs",
    "results",
    "products",
    "breakages",
    "frozen.json.gz",
    "in-place.lock",
    "build.json",
    "record.json",
    "events.jsonl",
    "fetched.jsonl",
    "agent",
    *_TRANSCRIPTS,
)


def is_attempt(path: Path) -> bool:
    """Whether a folder is an attempt of a run, and not a repository with a job.json of its own."""
    if path.absolute().parent.name != "attempts":
        return False
    try:
        Job.load(path / "job.json")
    except RecordError:
        return False
    return True


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def run_file(self) -> Path:
        """What was asked for."""
        return self.path / "run.json"

    @property
    def page_file(self) -> Path:
        """The table as a page."""
        return self.path / "index.html"

    def claim(self, plan: Setting) -> None:
        """Make the folder a run's, and keep what was asked for in it.

        Raises:
            RecordError: it cannot be written, or holds something that is no run.
        """
        self.check_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            plan.save(self.run_file)
        except OSError as error:
            raise RecordError(
                f"{self.path} cannot be written: {error.strerror}",
                advice="choose another folder with --out",
            ) from error

    def check_free(self) -> None:
        """See that the folder is a run's, or can become one; nothing is changed.

        Raises:
            RecordError: it holds something that is no run, or cannot be looked into.
        """
        advice = "choose another folder with --out"
        try:
            if self.run_file.is_file():
                why = _why_no_run(self.run_file)
            elif self.path.exists() and any(self.path.iterdir()):
                why = "it has no run.json"
            else:
                return
        except OSError as error:
            raise RecordError(
                f"{self.path} cannot be a run's folder: {error.strerror}", advice=advice
            ) from error
        if why:
            repository = ", but a git repository" if (self.path / ".git").exists() else ""
            raise RecordError(
                f"{self.path} is not empty, and no run{repository}: {why}", advice=advice
            )

    def require(self) -> None:
        """See that a run is here.

        Raises:
            RecordError: there is none.
        """
        if not self.run_file.is_file():
            what = "it has no run.json" if self.path.is_dir() else "there is no such folder"
            raise RecordError(
                f"{self.path} is not a run folder: {what}",
                advice="give the folder that `reb run` named, such as runs/starter-builtin",
            )

    def attempt(self, task: str, number: int) -> AttemptFolder:
        """The folder of one attempt, which may not exist yet."""
        return AttemptFolder(self.path / "attempts" / f"{task}--{number}")

    def attempts(self) -> list[AttemptFolder]:
        """All attempts that were begun, by name."""
        folder = self.path / "attempts"
        return [AttemptFolder(path.parent) for path in sorted(folder.glob("*/job.json"))]


def _why_no_run(file: Path) -> str:
    """Why a run.json is none of ours, or nothing: a repository may have one of its own."""
    try:
        Setting.load(file)
    except RecordError as error:
        return str(error.args[0])
    return ""


def read_run(path: str | Path) -> list[Record]:
    """The records of a run, one an attempt that has one, in the order of their names.

    Raises:
        RecordError: `path` is no run folder, or a record in it cannot be read.
    """
    folder = RunFolder(Path(path))
    folder.require()
    records = [attempt.load_record() for attempt in folder.attempts()]
    return [record for record in records if record is not None]
