"""The process that opens what a stage left: a job from standard input, answers to output.

Its memory is limited before it reads the first byte; its time by its parent, `contained`.
An answer is one line of JSON, written as soon as it is known, so that a file that ends this
process takes no other answer with it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from . import ReaderMissing, Unreadable, Wanted, open_file
from .lines import search_lines, search_text
from .numbers import Limits
from .wording import shorten


def main() -> None:
    """Do the job that standard input describes."""
    _limit(resource.RLIMIT_CORE, 0)
    job = json.load(sys.stdin)
    _limit(resource.RLIMIT_DATA, job["memory_limit_bytes"])
    _limit(resource.RLIMIT_FSIZE, 10_000_000)
    # What a C library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for answer in _ANSWERS[job["kind"]](job):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (most, most))


def _files(job: dict[str, Any]) -> Any:
    for path in job["paths"]:
        yield _file(Path(path), Wanted.from_json(dict(job["wanted"])))


def _file(path: Path, wanted: Wanted) -> dict[str, Any]:
    try:
        found = open_file(path, wanted)
    except Unreadable as error:
        return {"what": "", "faults": [str(error)]}
    except ReaderMissing as error:
        return {"what": "", "faults": [], "missing": str(error)}
    except MemoryError:
        return {"what": "", "faults": ["reading it takes more memory than a file may"]}
    except OSError as error:
        return {"what": "", "faults": [f"it cannot be read: {error.strerror or error}"]}
    faults = [shorten(fault, 400) for fault in found.faults]
    fingerprints = found.fingerprints
    return {"what": shorten(found.what, 600), "faults": faults, "fingerprints": fingerprints}


def _lines(job: dict[str, Any]) -> Any:
    groups = {name: Limits(**limits) for name, limits in job["groups"].items()}
    yield dataclasses.asdict(search_lines(Path(job["path"]), job["pattern"], groups))


def _text(job: dict[str, Any]) -> Any:
    yield {"found": search_text(job["text"], job["pattern"])}


_ANSWERS: dict[str, Any] = {"files": _files, "lines": _lines, "text": _text}

if __name__ == "__main__":
    main()
