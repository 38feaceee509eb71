"""What a stage must leave behind: the kinds of evidence that a task can demand.

Each kind is a model here, a sentence in `verify.evidence_words` and a check in
`verify.evidence`; the formats of files are opened by `verify.readers`. A command's exit
status alone proves nothing, so a stage without other evidence is no stage.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from .schema import Model, compile_pattern

FileFormat = Literal[
    "any",
    "json",
    "csv",
    "npy",
    "npz",
    "safetensors",
    "torch",
    "png",
    "jpeg",
    "wav",
    "video",
    "hdf5",
    "tfevents",
]


class Bounds(Model):
    """What the numbers that a named group of a pattern matched must satisfy."""

    finite: bool = Field(True, description="No NaN and no infinity.")
    min: float | None = None
    max: float | None = None
    falling: bool = Field(False, description="The last match is lower than the first.")


class OutputEvidence(Model):
    """Text that the command, or one of its services, printed."""

    kind: Literal["output"]
    pattern: str = Field(
        description="A Python regular expression, searched in each line (its first 16384 "
        "characters; a carriage return ends a line, colour codes are taken out)."
    )
    at_least: int = Field(1, ge=1, description="How many lines must match.")
    groups: dict[str, Bounds] = Field(
        default_factory=dict, description="Named groups that hold numbers, and their bounds."
    )
    service: str | None = Field(None, description="Look in this service's output instead.")

    @model_validator(mode="after")
    def _pattern_compiles(self) -> OutputEvidence:
        compiled = compile_pattern(self.pattern)
        for group in self.groups:
            if group not in compiled.groupindex:
                raise ValueError(f"group {group!r} is not a named group (?P<{group}>…) of pattern")
        return self


class HttpEvidence(Model):
    """The answer of a service to a request that is sent after the command has ended."""

    kind: Literal["http"]
    url: str = Field(description="With {port}; only an address of this host.")
    method: Literal["GET", "POST", "PUT"] = "GET"
    body: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    status: int = 200
    pattern: str | None = Field(None, description="Regular expression that the body matches.")
    time_limit_s: float = Field(30.0, gt=0)

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, value: str | None) -> str | None:
        if value is not None:
            compile_pattern(value)
        return value

    @field_validator("url")
    @classmethod
    def _local(cls, value: str) -> str:
        if not re.match(r"^http://(127\.0\.0\.1|localhost|\[::1\])(:(\{port\}|\d+))?/", value):
            raise ValueError(
                "must be an http address of this host, such as http://127.0.0.1:{port}/"
            )
        return value


class FileEvidence(Model):
    """A file that this run made, and that is really opened."""

    kind: Literal["file"]
    pattern: str = Field(description="A glob with placeholders, such as {work}/*.csv.")
    format: FileFormat = "any"
    at_least: int = Field(1, ge=1, description="How many files must match.")
    min_bytes: int = Field(1, ge=0)
    rows: int | None = Field(None, ge=0, description="csv: least number of data rows.")
    columns: tuple[str, ...] = Field((), description="csv: columns that the header names.")
    numeric: dict[str, Bounds] = Field(
        default_factory=dict,
        description="csv column, json path (a.b.0), npz/hdf5/safetensors/torch array (in npy "
        "`array`) or tfevents tag, and the bounds of its numbers.",
    )
    keys: tuple[str, ...] = Field(
        (), description="json keys, npz/hdf5/safetensors/torch names or tfevents tags to be there."
    )
    min_width: int | None = Field(None, ge=1, description="png, jpeg, video: pixels.")
    min_height: int | None = Field(None, ge=1, description="png, jpeg, video: pixels.")
    varied: bool = Field(
        True, description="png, jpeg, wav, video: the content is not one constant value."
    )
    min_seconds: float | None = Field(None, gt=0, description="wav, video: least duration.")


class ChangeEvidence(Model):
    """Numbers that two files of this run hold under the same names, and that differ.

    That weights are saved, and steps counted, does not show that a step changed one: two
    checkpoints of a training do. Each file of `pattern` is compared with each of `since`, as far
    as they are whole and finite; there must be at least one of both.
    """

    kind: Literal["change"]
    since: str = Field(description="A glob with placeholders: files with the numbers as they were.")
    pattern: str = Field(description="A glob with placeholders: files with them as they are later.")
    format: Literal["safetensors", "torch"]
    arrays: tuple[str, ...] = Field(
        min_length=1,
        description="Names of arrays; each must be finite, as many numbers of the same type in "
        "both, and changed. Take weights: statistics of a batch change without a step.",
    )


class ExitEvidence(Model):
    """The exit status of the command; a stage without this entry expects 0."""

    kind: Literal["exit"]
    code: int = 0


Evidence = Annotated[
    OutputEvidence | HttpEvidence | FileEvidence | ChangeEvidence | ExitEvidence,
    Field(discriminator="kind"),
]


def with_placeholders(entry: Evidence) -> list[tuple[str, str]]:
    """Every (key, text) of an entry in which placeholders are filled in."""
    match entry:
        case FileEvidence():
            return [("pattern", entry.pattern)]
        case ChangeEvidence():
            return [("since", entry.since), ("pattern", entry.pattern)]
        case HttpEvidence():
            return [("url", entry.url)]
        case OutputEvidence() | ExitEvidence():
            return []
