"""What is asked: suites, tasks, and the stages by which an environment is judged.

A task is a folder with a `task.toml`. It says where the source comes from, which commands
are the repository's own entry points on the CPU, one GPU and several GPUs, what those must
leave behind to count as real work (`evidence`), and, so that the task itself can be
trusted, a recipe that passes (gold) and damages that must not (breakages). This module
holds that vocabulary and what must be consistent in it; `taskfile` loads it. It runs
nothing and fetches nothing.
"""

from __future__ import annotations

import ast
import hashlib
import re
from datetime import date  # noqa: TC003  # pydantic needs it at run time
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from .asset import Asset, scripts
from .errors import TaskError
from .evidence import Evidence, ExitEvidence, HttpEvidence, OutputEvidence, with_placeholders
from .schema import Model, check_specifier, compile_pattern, shorten, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

Framework = Literal["torch", "jax", "tensorflow"]
Launcher = Literal[
    "python", "console_script", "torchrun", "accelerate", "deepspeed", "lightning", "mpirun"
]
Parallelism = Literal["ddp", "fsdp", "tensor", "pipeline", "device_map", "replicas"]

#: Placeholders that a command, a folder, an environment value or a pattern may hold.
#: `{assets.NAME}` is the one more, for each asset that the stage names.
PLACEHOLDERS = ("python", "prefix", "repo", "work", "out", "nproc", "port", "task")
#: Those that the steps of a recipe may hold.
RECIPE_PLACEHOLDERS = ("uv", "python", "prefix", "repo", "work", "task")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?)\}")


#: What of a task changes no verdict.
_NOT_JUDGED = (
    *("gold", "breakages", "notes", "title", "homepage", "licence", "demo", "slow"),
    *("also_uses", "native_extensions", "auxiliary_tools", "provenance"),
)


class StageName(StrEnum):
    """The three ways in which a task runs the repository's entry point."""

    CPU = "cpu"
    SINGLE_GPU = "single_gpu"
    MULTI_GPU = "multi_gpu"


# --- where the source comes from -------------------------------------------------------


class GitSource(Model):
    """A git repository at a commit."""

    kind: Literal["git"]
    url: str = Field(description="A URL that git can clone, or a folder on this host.")
    commit: str = Field(description="The full commit id: 40 hexadecimal digits.")
    submodules: bool = Field(False, description="Check out the commit's submodules too.")
    also_at: tuple[str, ...] = Field(
        (), description="Other addresses that hold the same commit: a new name, a fork."
    )
    unavailable: str | None = Field(
        None, description="Why the commit cannot be had any more; a mirror is still asked."
    )

    @field_validator("commit")
    @classmethod
    def _full(cls, value: str) -> str:
        if not _COMMIT.fullmatch(value):
            raise ValueError(
                f"not a full commit id of 40 hexadecimal digits: {shorten(value)}; a branch or a "
                "tag can move, and names no fixed source"
            )
        return value


class SdistSource(Model):
    """A source distribution that the host's package index serves."""

    kind: Literal["sdist"]
    name: str = Field(description="The distribution's name on the index.")
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Digest of the archive.")


class FolderSource(Model):
    """A folder on this host, taken as it is when the task starts."""

    kind: Literal["folder"]
    path: str = Field(description="Absolute, or relative to the task's folder.")


Source = Annotated[GitSource | SdistSource | FolderSource, Field(discriminator="kind")]


# --- stages ----------------------------------------------------------------------------


class ReadmeBlock(Model):
    """A fenced code block of the repository's documentation, taken from it at run time."""

    file: str = Field(description="Path within the repository, such as README.md.")
    number: int = Field(ge=1, description="Which block, counted from 1 among `language`.")
    language: Literal["python", "bash", "sh"] = "python"
    echo: bool = Field(
        False,
        description="Print the value of each expression statement, as the interactive prompt "
        "does (python only). The block itself is run unchanged.",
    )


class Service(Model):
    """A process beside which the stage's command runs."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    command: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    folder: str = "{work}"
    ready_url: str | None = Field(None, description="Answers any status below 500 when ready.")
    ready_port: bool = Field(False, description="Ready when {port} accepts a connection.")
    ready_output: str | None = Field(None, description="Ready when a line matches this.")
    ready_within_s: float = Field(60.0, gt=0)

    @model_validator(mode="after")
    def _has_readiness_test(self) -> Service:
        if not (self.ready_url or self.ready_port or self.ready_output):
            raise ValueError("needs a readiness test: ready_url, ready_port or ready_output")
        if self.ready_output:
            compile_pattern(self.ready_output)
        return self


class Stage(Model):
    """One of the repository's own entry points, and the proof that it did its work."""

    command: tuple[str, ...] = Field((), description="Arguments, never a shell line.")
    readme_block: ReadmeBlock | None = None
    launcher: Launcher = "python"
    parallelism: Parallelism | None = Field(None, description="Required for multi_gpu.")
    env: dict[str, str] = Field(default_factory=dict)
    folder: str = Field("{work}", description="Working folder; default a fresh empty one.")
    time_limit_s: float = Field(600.0, gt=0)
    gpus: int | None = Field(None, ge=0, description="Default 0, 1 and 2 by the stage's name.")
    network: bool = Field(False, description="The stage needs a network.")
    assets: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    not_solvable: str | None = Field(
        None, description="Why no environment can pass it, with the line that shows it."
    )
    not_distributed: str | None = Field(
        None, description="Why the repository offers no distributed run (multi_gpu only)."
    )
    notes: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Stage:
        if self.not_solvable or self.not_distributed:
            return self
        if bool(self.command) == bool(self.readme_block):
            raise ValueError("needs either command or readme_block, and not both")
        if not [e for e in self.evidence if not isinstance(e, ExitEvidence)]:
            raise ValueError("needs evidence beside the exit status, which proves nothing")
        names = [service.name for service in self.services]
        if len(set(names)) != len(names):
            raise ValueError("two services have the same name")
        for entry in self.evidence:
            if isinstance(entry, OutputEvidence) and entry.service not in (None, *names):
                raise ValueError(f"evidence names an unknown service {entry.service!r}")
            if isinstance(entry, HttpEvidence) and not names:
                raise ValueError("http evidence needs a service that answers")
        return self

    @property
    def expected_exit(self) -> int:
        """The exit status that counts as a good end."""
        return next((e.code for e in self.evidence if isinstance(e, ExitEvidence)), 0)

    def argument_texts(self) -> list[tuple[str, str]]:
        """Every (key, text) in which placeholders are filled in."""
        texts = [(f"command.{i}", text) for i, text in enumerate(self.command)]
        texts += [(f"env.{key}", text) for key, text in self.env.items()]
        texts.append(("folder", self.folder))
        for service in self.services:
            at = f"services.{service.name}"
            texts += [(f"{at}.command.{i}", text) for i, text in enumerate(service.command)]
            texts += [(f"{at}.env.{key}", text) for key, text in service.env.items()]
            texts.append((f"{at}.folder", service.folder))
            if service.ready_url:
                texts.append((f"{at}.ready_url", service.ready_url))
        for i, entry in enumerate(self.evidence):
            texts += [(f"evidence.{i}.{key}", text) for key, text in with_placeholders(entry)]
        return texts


# --- how the task itself is proven -----------------------------------------------------


class Recipe(Model):
    """Steps that build an environment, as arguments; `{uv}`, `{python}`, `{repo}` are filled in.

    The harness makes an empty virtual environment with the first interpreter of this host
    that satisfies `python`; the steps then fill it.
    """

    python: str = Field(">=3.11", description="Version specifier of the interpreter.")
    seed: tuple[str, ...] = Field((), description="Requirements put in first, such as pip<24.1.")
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(
        default_factory=dict, description="Small files for the steps, written below {work}."
    )
    steps: tuple[tuple[str, ...], ...] = Field(min_length=1)
    time_limit_s: float = Field(1800.0, gt=0)
    report_env: dict[str, str] = Field(
        default_factory=dict, description="The report's `env` table: variables for the stages."
    )

    @field_validator("python")
    @classmethod
    def _specifier(cls, value: str) -> str:
        return check_specifier(value)

    @model_validator(mode="after")
    def _placeholders(self) -> Recipe:
        texts = [
            (f"steps.{i}.{j}", text)
            for i, step in enumerate(self.steps)
            for j, text in enumerate(step)
        ]
        texts += [(f"env.{key}", text) for key, text in self.env.items()]
        for key, text in texts:
            _check_placeholders(key, text, RECIPE_PLACEHOLDERS)
        return self


class Breakage(Model):
    """A damage done to the gold environment, and what it must and must not change."""

    description: str
    level: Literal["C0", "C1", "C2", "C3", "C4"] = "C1"
    expect: Literal["failed", "passed"] = Field(
        "failed", description="`passed` makes it a negative control."
    )
    because: str | None = Field(
        None, description="Regular expression that the stage's log or reason matches."
    )
    uninstall: tuple[str, ...] = Field((), description="Distributions to remove.")
    remove: tuple[str, ...] = Field((), description="Globs below site-packages to delete.")
    stub: tuple[str, ...] = Field((), description="Import names replaced by an empty package.")
    append: dict[str, str] = Field(
        default_factory=dict,
        description="By module file below site-packages, Python code that is added at its end.",
    )
    install: tuple[str, ...] = Field((), description="Requirements to install over it.")
    no_deps: bool = Field(False, description="Install them without what they need.")

    @model_validator(mode="after")
    def _does_something(self) -> Breakage:
        if not (self.uninstall or self.remove or self.stub or self.append or self.install):
            raise ValueError("does nothing: give uninstall, remove, stub, append or install")
        for file, code in self.append.items():
            if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
                raise ValueError(f"append: {file}: is not below site-packages")
            try:
                ast.parse(code)
            except (SyntaxError, ValueError) as error:
                raise ValueError(f"append: the code for {file}: {error}") from error
        if self.expect == "failed" and self.because is None:
            raise ValueError("needs `because`: a pattern for the reason that the failure must show")
        if self.because is not None:
            compile_pattern(self.because)
        return self


# --- the task --------------------------------------------------------------------------


class C0Scope(Model):
    """Where C0's verdict looks; its rate always covers all tracked files."""

    roots: tuple[str, ...] = Field(
        (), description="Files or folders; default: the import closure of the stages' scripts."
    )
    total_paper: int | None = Field(
        None, ge=0, description="Imported modules that the paper's release fixes for the commit."
    )


class Applicability(Model):
    """The stages that count for the repository, whether or not they are written here yet.

    Without this table a stage that the task does not have does not apply. With it, one that
    applies and is not written keeps its place in the denominator, inconclusive (task).
    """

    cpu: bool
    single_gpu: bool
    multi_gpu: bool
    why_not: dict[StageName, str] = Field(
        default_factory=dict, description="By stage, why it does not apply."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Applicability:
        for name in self.why_not:
            if self.applies(name):
                raise ValueError(f"why_not.{name}: the stage applies; leave this out")
        return self

    def applies(self, name: StageName) -> bool:
        """Whether the stage counts."""
        return bool(getattr(self, name))


class Provenance(Model):
    """Where the task comes from. What is not known is left out, never filled in from today."""

    paper: str = Field("", description="The publication that chose the repository.")
    facts: str = Field("", description="Where the facts of this file come from.")
    selected_on: date | None = Field(None, description="Day of the selection, as YYYY-MM-DD text.")
    stars_at_selection: int | None = Field(
        None, ge=0, description="Stars of the repository on that day."
    )


class Task(Model):
    """One repository, and what it means for an environment of it to work."""

    schema_version: Literal[1] = Field(alias="schema")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    domain: str
    homepage: str = ""
    licence: str | None = None
    source: Source
    python: str = Field("", description="Version specifier that the repository states.")
    frameworks: tuple[Framework, ...] = ()
    also_uses: tuple[str, ...] = Field(
        (), description="Other frameworks that matter for the environment; C2 asks none of them."
    )
    native_extensions: dict[str, str] = Field(
        default_factory=dict,
        description="Compiled modules that the code uses, with what each is for.",
    )
    auxiliary_tools: tuple[str, ...] = Field(
        (), description="Other packages and programs that the stages need."
    )
    applicable: Applicability | None = Field(
        None, description="Stages that count; default: those that the task has."
    )
    provenance: Provenance = Provenance()
    generated: tuple[str, ...] = Field(
        (), description="Globs of tracked files that the repository's own installer rewrites."
    )
    demo: bool = Field(False, description="Part of `reb run SUITE` without --all.")
    slow: bool = Field(False, description="Takes long to build; left out unless asked for.")
    c0: C0Scope = C0Scope()
    assets: dict[str, Asset] = Field(default_factory=dict)
    stages: dict[StageName, Stage] = Field(default_factory=dict)
    gold: Recipe | None = None
    breakages: dict[str, Breakage] = Field(default_factory=dict)
    notes: str = ""
    #: Where it was loaded from; not part of the file.
    folder: Path = Field(default=Path(), exclude=True)

    @field_validator("python")
    @classmethod
    def _specifier(cls, value: str) -> str:
        return check_specifier(value)

    @field_validator("assets")
    @classmethod
    def _placeholders_can_name_them(cls, value: dict[str, Asset]) -> dict[str, Asset]:
        for name in value:
            if not _PLACEHOLDER.fullmatch(f"{{assets.{name}}}"):
                raise ValueError(
                    f"{shorten(name)!r} is no name for an asset: letters, digits, - and _ only"
                )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        for name, stage in self.stages.items():
            at = f"stages.{name}"
            if self.applicable is not None and not self.applicable.applies(name):
                raise ValueError(f"{at}: applicable.{name} says that it does not apply")
            for asset in stage.assets:
                if asset not in self.assets:
                    raise ValueError(
                        f"{at}.assets: {asset!r} is not defined{suggest(asset, self.assets)}; "
                        f"add a table [assets.{asset}]"
                    )
            for key, text in stage.argument_texts():
                known = [*PLACEHOLDERS, *(f"assets.{asset}" for asset in stage.assets)]
                _check_placeholders(f"{at}.{key}", text, known)
            if name is StageName.MULTI_GPU and not (
                stage.parallelism or stage.not_distributed or stage.not_solvable
            ):
                raise ValueError(
                    f"{at}: needs parallelism, one of {', '.join(get_args(Parallelism))}"
                )
            if name is not StageName.MULTI_GPU and stage.not_distributed:
                raise ValueError(f"{at}.not_distributed: belongs to stages.multi_gpu only")
            if name is StageName.CPU and stage.gpus:
                raise ValueError(f"{at}.gpus: the cpu stage hides the GPUs; leave it out")
        return self

    def gpus(self, name: StageName) -> int:
        """How many GPUs the stage is shown."""
        default = {StageName.CPU: 0, StageName.SINGLE_GPU: 1, StageName.MULTI_GPU: 2}[name]
        gpus = self.stages[name].gpus
        return default if gpus is None else gpus

    def is_unwritten(self, name: StageName) -> bool:
        """Whether the stage counts for the repository, and the task does not have it yet."""
        written = name in self.stages
        return not written and self.applicable is not None and self.applicable.applies(name)

    def word_for_unwritten(self) -> str:
        """Why stages that count are not there: `no source` where nobody can write them."""
        return "no source" if self.unavailable else "not written"

    def why_not_applicable(self, name: StageName) -> str:
        """Why a stage that the task does not have, and that is not unwritten, does not apply."""
        why = self.applicable.why_not.get(name) if self.applicable is not None else None
        return why or f"the task has no {name} stage"

    @property
    def unavailable(self) -> str | None:
        """Why the source cannot be had any more, where the task says so."""
        return self.source.unavailable if isinstance(self.source, GitSource) else None

    @property
    def digest(self) -> str:
        """Digest of everything in the task that can change a verdict.

        The gold recipe, the breakages and the prose are left out: they say how far the
        task is to be trusted, and an attempt made before they changed stays valid. So are the
        addresses beside the source's own, since its commit fixes what it is. What only some
        tasks say is in it where they say it, so that a new key changes no other task.
        """
        left_out: dict[str, Any] = dict.fromkeys(_NOT_JUDGED, True)
        left_out["c0"] = {"total_paper"}
        left_out["source"] = {"also_at"} | (set() if self.unavailable else {"unavailable"})
        left_out["applicable"] = True if self.applicable is None else {"why_not"}
        if self.assets:
            left_out["assets"] = {name: asset.not_judged for name, asset in self.assets.items()}
        judged = self.model_dump_json(by_alias=True, exclude=left_out)
        total = hashlib.sha256(judged.encode())
        for path in [*self.driver_files(), *scripts(self.assets, self.folder).values()]:
            total.update(path.name.encode() + path.read_bytes())
        return total.hexdigest()

    def driver_files(self) -> list[Path]:
        """The files beside the task file that its stages name by `{task}/…`."""
        names = {
            text.removeprefix("{task}/")
            for stage in self.stages.values()
            for _, text in stage.argument_texts()
            if text.startswith("{task}/")
        }
        return [path for name in sorted(names) if (path := self.folder / name).is_file()]


class SuiteFacts(Model):
    """What `suite.toml` beside the tasks says of them all; a suite needs none."""

    schema_version: Literal[1] = Field(1, alias="schema")
    title: str = ""
    homepage: str = ""
    c0_total: int | None = Field(
        None, ge=0, description="Sum of the published totals of imports, over all tasks."
    )
    c0_total_available: int | None = Field(
        None, ge=0, description="The same over the tasks whose source can be had."
    )


class Suite(Model):
    """A folder of tasks."""

    name: str
    folder: Path
    tasks: tuple[Task, ...]
    facts: SuiteFacts = SuiteFacts()

    def task(self, name: str) -> Task:
        """The task of that name.

        Raises:
            TaskError: there is none; names the closest.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        names = [task.name for task in self.tasks]
        raise TaskError(
            f"suite {self.name} has no task {name!r}{suggest(name, names)}",
            advice=f"reb tasks list {self.name}",
        )


def fill(text: str, values: dict[str, str]) -> str:
    """`text` with each `{placeholder}` that `values` names replaced; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _check_placeholders(key: str, text: str, known: Iterable[str]) -> None:
    for used in _PLACEHOLDER.findall(text):
        if used not in known:
            raise ValueError(f"{key}: unknown placeholder {{{used}}}{suggest(used, known)}")
