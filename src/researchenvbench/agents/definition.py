"""Agents that are command lines, as data: a TOML file for each.

    agents/definitions/NAME.toml      those of this package
    --agent command --agent-option file=FILE      yours

A file says which program it is and where it comes from, how it is started, what it finds in
its environment, how it speaks to a model, and how its transcript is read. `program.py` runs
all of them in one way. In arguments, variables and files these stand for what a build gives:

    {program}      the program, or `program` of the file where nothing is installed
    {prompt}       the task, as text          {prompt_file}  a file in the box that holds it
    {model}        the model's name           {address}      where the relay answers, no /v1
    {token}        what the relay asks for    {config}       the agent's own folder in the box
    {repo} {report} {env} {home}              as in the task
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from ..errors import RebError
from ..model_use import Wire  # noqa: TC001  # its models are checked by it
from ..schema import Model, explain, suggest, suggest_path
from ..stored import require_file

_BUNDLED = Path(__file__).parent / "definitions"
_MAX_FILE_BYTES = 200_000
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
#: What stands in braces in a definition, and is replaced.
PLACEHOLDERS = (
    *("program", "prompt", "prompt_file", "model", "address", "token", "config"),
    *("repo", "report", "env", "home"),
)
#: Those that need the relay.
_OF_MODEL = frozenset({"model", "address", "token"})

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
#: Which reader turns the program's own transcript into the common one.
TranscriptKind = Literal["claude-code", "codex", "none"]


class Download(Model):
    """The archive of a program for one kind of machine."""

    url: str = Field(pattern=r"^https?://", description="Of a gzipped tar archive.")
    integrity: str = Field(
        pattern=r"^sha512-[A-Za-z0-9+/]{86}==$",
        description="As package managers write it: sha512 and the digest in base64.",
    )
    size_bytes: int = Field(gt=0, description="Of the archive.")
    take: dict[str, str] = Field(
        min_length=1, description="Files and folders of the archive, by their name when installed."
    )


class Run(Model):
    """How the program is started."""

    argv: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(
        default_factory=dict, description="Written into {config} before it starts, by name."
    )
    success: tuple[int, ...] = Field(
        (0,), min_length=1, description="Exit statuses of one that has ended well."
    )
    quiet_minutes: float = Field(
        30.0,
        gt=0,
        description="With neither output nor a call of the model for so long, it hangs.",
    )

    @field_validator("env")
    @classmethod
    def _are_names(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(
                    f"{name!r} is no name of a variable, or its value holds a zero byte"
                )
        return env

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts or not name or "\0" in name:
                raise ValueError(f"{name!r} does not lie in the agent's own folder")
        return files


class AgentDefinition(Model):
    """An agent that is a command line."""

    name: Name
    title: str = Field(description="Its maker's name of it.")
    version: str = Field(
        "",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$|^$",
        description="That is installed; empty: what the box has.",
    )
    homepage: str = ""
    wire: Wire | None = Field(None, description="How it speaks to a model; none: it needs none.")
    program: str = Field(
        "",
        description="Where nothing is installed: found on the box's PATH. Else: of what was "
        "taken from the archive, the file to start.",
    )
    downloads: dict[Literal["x86_64", "aarch64"], Download] = Field(default_factory=dict)
    version_argv: tuple[str, ...] = Field(
        (), description="What prints its version; nothing: it is not asked."
    )
    run: Run
    keep: tuple[str, ...] = Field(
        (), description="Globs of files that are kept from {config}, such as its own sessions."
    )
    transcript: TranscriptKind = "none"
    notes: str = ""

    @field_validator("keep")
    @classmethod
    def _of_its_own(cls, keep: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in keep:
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts or not pattern:
                raise ValueError(f"{pattern!r} does not lie in the agent's own folder")
        return keep

    @model_validator(mode="after")
    def _placeholders_are_known(self) -> AgentDefinition:
        texts = [*self.run.argv, *self.run.env.values(), *self.run.files.values()]
        for used in _PLACEHOLDER.findall("\n".join(texts)):
            if used in _OF_MODEL and self.wire is None:
                raise ValueError(f"run: {{{used}}} needs `wire`: how it speaks to a model")
            near = suggest(used, PLACEHOLDERS)
            if near and used not in PLACEHOLDERS:
                raise ValueError(f"run: unknown placeholder {{{used}}}{near}")
        if not any("{prompt" in text for text in texts):
            raise ValueError("run: the task is given nowhere: {prompt} or {prompt_file}")
        if not self.program:
            raise ValueError("program: is required: what is started")
        if self.downloads and not self.version:
            raise ValueError("version: is required where something is installed")
        for machine, download in self.downloads.items():
            if self.program not in download.take.values() and not any(
                self.program.startswith(f"{name}/") for name in download.take.values()
            ):
                raise ValueError(
                    f"downloads.{machine}.take: does not bring {self.program}, which is started"
                )
        return self


def bundled_agents() -> list[str]:
    """Names of the agents that come as definitions with this package."""
    return sorted(path.stem for path in _BUNDLED.glob("*.toml"))


def load_bundled(name: str) -> AgentDefinition:
    """The definition of that name that comes with this package."""
    return load_definition(_BUNDLED / f"{name}.toml")


def load_definition(path: Path) -> AgentDefinition:
    """Read a definition.

    Raises:
        RebError: it cannot be read, or is none; every fault is named.
    """
    require_file(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise RebError(f"{path}: is larger than a definition can be")
        return AgentDefinition.model_validate(tomllib.loads(content.decode()))
    except FileNotFoundError as error:
        raise RebError(f"{path}: there is no such file: {suggest_path(path)}") from error
    except OSError as error:
        raise RebError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RebError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        raise RebError(
            "\n".join(explain(path, error, AgentDefinition)),
            advice="docs/agents.md says what each key means",
        ) from error
