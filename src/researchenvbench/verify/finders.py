"""What the judged interpreter's own finders find, asked with a nonce drawn at run time.

The names go to a stand-alone probe. It imports nothing unless it is told to, and then in a
process of its own, so that a package that crashes does not take the answer with it.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import Owner
from ..errors import SandboxError
from ..sandbox import Command
from .imports import stdlib_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..sandbox import Box

_PROBE = Path(__file__).parent / "probes" / "find_modules.py"
_ANSWER_LIMIT_BYTES = 50_000_000
_PROBE_LIMIT_S = 600.0


@dataclass(frozen=True)
class Found:
    """What the interpreter's own finders say."""

    version: str
    standard: frozenset[str]  #: names of its standard library
    answers: Mapping[str, str]  #: full name to `module`, `hollow` or `missing`
    seconds: float


class FindersFailed(Exception):  # noqa: N818  # it is an outcome, with an owner, not an error
    """The interpreter gave no answer; with owner AGENT it is not a usable interpreter."""

    def __init__(self, owner: Owner, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.owner = owner
        self.reason = reason
        self.seconds = seconds


def find_modules(
    box: Box,
    python: Path,
    names: Sequence[str],
    log: Path,
    *,
    parents: bool,
    environment: Mapping[str, str],
) -> Found:
    """Which of the full names `python` finds; `parents` may import the packages above them.

    Raises:
        FindersFailed: it gave no answer.
    """
    nonce = secrets.token_hex(16)
    # A folder of its own: the script's folder is on the interpreter's search path.
    folder = box.layout.tools / f"find-{nonce[:8]}"
    script, question, answer = (
        folder / "find_modules.py",
        folder / "question.json",
        folder / "answer.json",
    )
    box.put(script, _PROBE.read_bytes())
    box.put(question, json.dumps({"names": list(names), "parents": parents}).encode())
    box.put(answer, b"")
    finished = box.run(
        Command(
            argv=[str(python), "-B", str(script), nonce, str(question), str(answer)],
            cwd=box.layout.work,
            env=environment,
            time_limit_s=_PROBE_LIMIT_S,
        ),
        log,
        append=True,
    )
    if finished.timed_out:
        raise FindersFailed(
            Owner.UNKNOWN,
            f"the interpreter did not say which modules it finds within {_PROBE_LIMIT_S:.0f} s",
            finished.seconds,
        )
    if finished.out_of_memory:
        raise FindersFailed(
            Owner.HOST, "memory ran out while modules were looked for", finished.seconds
        )
    try:
        said = json.loads(box.read(answer, _ANSWER_LIMIT_BYTES))
        if said["nonce"] != nonce:
            raise ValueError("not the answer to this question")
        standard = said["stdlib"]
        return Found(
            version=str(said["version"]),
            standard=stdlib_names(None if standard is None else [str(name) for name in standard]),
            answers={str(name): str(kind) for name, kind in said["answers"].items()},
            seconds=finished.seconds,
        )
    except (SandboxError, ValueError, KeyError, TypeError, AttributeError) as error:
        how = finished.start_error or finished.signal or f"exit status {finished.exit_code}"
        raise FindersFailed(
            Owner.AGENT,
            f"the interpreter cannot say which modules it finds: it ended with {how}",
            finished.seconds,
        ) from error
