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
from ..errors import RefusedError
from ..sandbox import Command
from ..stored import Stored
from .imports import stdlib_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..sandbox import Box

_PROBE = Path(__file__).parent / "probes" / "find_modules.py"
_ANSWER_LIMIT_BYTES = 50_000_000
_PROBE_LIMIT_S = 600.0
#: How long the packages of one name may take to be imported; what takes longer is missing.
_PARENT_LIMIT_S = 60.0


@dataclass(frozen=True)
class Found:
    """What the interpreter's own finders say."""

    version: str
    standard: frozenset[str]  #: names of its standard library
    answers: Mapping[str, str]  #: full name to `module`, `hollow` or `missing`
    seconds: float


class _Answer(Stored):
    """What an interpreter says, which may be anything."""

    nonce: str
    version: str
    stdlib: list[str] | None
    answers: dict[str, str]


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
    asked = {"names": list(names), "parents": parents, "limit_s": _PARENT_LIMIT_S}
    box.put(question, json.dumps(asked).encode())
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
        # It has said before which Python it is, and does not end being asked for its finders'.
        raise FindersFailed(
            Owner.AGENT,
            f"the interpreter did not say which modules it finds within {_PROBE_LIMIT_S:.0f} s",
            finished.seconds,
        )
    if finished.out_of_memory:
        raise FindersFailed(
            Owner.AGENT, "memory ran out while the interpreter looked for modules", finished.seconds
        )
    try:
        said = _Answer.model_validate_json(box.read(answer, _ANSWER_LIMIT_BYTES))
        if said.nonce != nonce:
            raise ValueError("not the answer to this question")
        return Found(
            version=said.version,
            standard=stdlib_names(said.stdlib),
            answers=said.answers,
            seconds=finished.seconds,
        )
    except (RefusedError, ValueError) as error:
        how = finished.start_error or finished.signal or f"exit status {finished.exit_code}"
        raise FindersFailed(
            Owner.AGENT,
            f"the interpreter cannot say which modules it finds: it ended with {how}",
            finished.seconds,
        ) from error
