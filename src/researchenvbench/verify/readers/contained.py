"""Runs the readers in a process of their own, with limits on memory and time.

What is opened was made by a program that is judged. A file may be built to crash the library
that reads it, to unpack without end, or to keep it busy for ever, and so may a log a regular
expression, which Python cannot interrupt. None of that reaches the harness.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .wording import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Enough for the largest pictures and documents that the readers accept.
MEMORY_LIMIT_BYTES = 2 << 30
#: For all files of one evidence entry, or one search; generous, since hosts may be busy.
TIME_LIMIT_S = 300.0
#: Libraries that would start threads, each with memory of its own, or load plug-ins.
_SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",  # no plug-in filters, by HDF5's own convention
}


@dataclass(frozen=True)
class Opened:
    """What one file turned out to be."""

    what: str
    faults: tuple[str, ...]
    missing: str | None = None  #: the distribution that would be needed to open it
    #: Of the numbers that were asked for, by name: `Numbers.fingerprint`.
    fingerprints: Mapping[str, Sequence[str]] = field(default_factory=dict)


class NoAnswer(Exception):  # noqa: N818 - a finding about a search
    """A search was not done within its time and memory; says how it ended."""


def open_files(
    paths: Sequence[Path], wanted: Mapping[str, Any], *, time_limit_s: float = TIME_LIMIT_S
) -> list[Opened]:
    """Open each file, in order. `wanted` has the fields of `readers.Wanted`, as JSON."""
    opened: list[Opened] = []
    deadline = time.monotonic() + time_limit_s
    while len(opened) < len(paths):
        left = paths[len(opened) :]
        job = {"kind": "files", "paths": [str(path) for path in left], "wanted": dict(wanted)}
        answers, ending = _run(job, deadline - time.monotonic())
        opened += [
            Opened(
                answer["what"],
                tuple(answer["faults"]),
                answer.get("missing"),
                answer.get("fingerprints", {}),
            )
            for answer in answers
        ]
        if ending and len(opened) < len(paths):
            fault = f"its reader {ending}"
            opened.append(Opened("", (fault,)))
        if time.monotonic() >= deadline:
            rest = len(paths) - len(opened)
            opened += [Opened("", ("not opened: no time was left for it",))] * rest
    return opened


def search_log(
    path: Path, pattern: str, groups: Mapping[str, Any], *, time_limit_s: float = TIME_LIMIT_S
) -> dict[str, Any]:
    """The fields of `lines.Search` for a log.

    Raises:
        NoAnswer: the search did not end well; says how it ended.
    """
    job = {"kind": "lines", "path": str(path), "pattern": pattern, "groups": dict(groups)}
    return _one(job, time_limit_s)


def search_text(text: str, pattern: str, *, time_limit_s: float = TIME_LIMIT_S) -> bool:
    """Whether a pattern is found in a text.

    Raises:
        NoAnswer: the search did not end well; says how it ended.
    """
    return bool(_one({"kind": "text", "text": text, "pattern": pattern}, time_limit_s)["found"])


def _one(job: dict[str, Any], time_limit_s: float) -> dict[str, Any]:
    answers, ending = _run(job, time_limit_s)
    if not answers:
        raise NoAnswer(ending)
    return answers[0]


def _run(job: dict[str, Any], time_limit_s: float) -> tuple[list[dict[str, Any]], str]:
    """The answers to a job, and how its process ended where that was not well."""
    job["memory_limit_bytes"] = MEMORY_LIMIT_BYTES
    # -P: the working folder is no place to import from.
    command = [sys.executable, "-P", "-m", __package__]
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.run(
                command,
                input=json.dumps(job).encode(),
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=os.environ | _SETTINGS,
                timeout=max(0.1, time_limit_s),
                check=False,
            )
            output, code = process.stdout, process.returncode
        except subprocess.TimeoutExpired as error:
            output, code = error.stdout or b"", None
        complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - 400))
        said = complaints.read().decode("utf-8", "replace").strip().splitlines()
    answers = [json.loads(line) for line in output.splitlines(keepends=True) if line[-1:] == b"\n"]
    if code == 0:
        return answers, ""
    if code is None:
        return answers, f"was not done within {max(0.1, time_limit_s):.0f} s"
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
    return answers, f"{ended}: {shorten(said[-1], 160)}" if said else ended
