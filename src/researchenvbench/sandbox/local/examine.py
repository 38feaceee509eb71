"""Looking at a box from within, by a module of the harness that stands alone."""

from __future__ import annotations

import json
import marshal
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import RefusedError, SandboxError
from ...owner import own_folder
from ...process import STAND_ALONE_ENV, Command
from ...standalone import memory
from ..collecting import refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...process import Finished
    from .. import Layout
    from ..tools import Tools

_ANSWER_LIMIT_BYTES = 1 << 30
#: A look at the harness's own few files takes a tenth of a second where the host is well.
_TRIVIAL_S = 60.0
#: The folder comes last on the path, since what lies in it may have names of the standard
#: library.
_START = "import sys; sys.path.append(sys.argv[1]); from standalone import examine; examine.main()"


class _Runs(Protocol):
    layout: Layout
    tools: Tools

    def run(self, command: Command, log: Path) -> Finished: ...

    def put(self, path: Path, content: bytes) -> None: ...

    def read(self, path: Path, limit_bytes: int) -> bytes: ...


class Examines:
    """What a stage box needs to be looked at: it can run, take and give files."""

    def examine(
        self: _Runs, module: str, order: Mapping[str, object], *, time_limit_s: float = 600.0
    ) -> dict[str, Any]:
        """What `standalone.look.MODULE.examine(order)` answers.

        Raises:
            RefusedError: what lies there cannot be looked at, though other things can.
            SandboxError: nothing can be looked at, or the answer cannot be read.
        """
        try:
            answer = _answered(self, module, order, time_limit_s)
        except _StuckError as stuck:
            # Where another look ends well, it is what was left that this one did not get over.
            _answered(self, "sizes", {"root": str(self.layout.tools)}, _TRIVIAL_S)
            raise RefusedError(*stuck.args) from stuck
        if "refused" in answer:
            raise refused(str(answer["refused"]), answer["errno"])
        return dict(answer["found"])


class _StuckError(SandboxError):
    """A look did not end in time, ended by itself, or took more memory than the job may have."""


def _answered(
    box: _Runs, module: str, order: Mapping[str, object], time_limit_s: float
) -> dict[str, Any]:
    """The answer of a look.

    Raises:
        _StuckError: it is not known yet whether that is the host's fault.
        SandboxError: it cannot be started, was killed, or its answer cannot be read.
    """
    cannot = f"the box cannot be looked at ({module})"
    stem = box.layout.tools / f"{module}-{secrets.token_hex(8)}"
    question, answer = stem.with_suffix(".order"), stem.with_suffix(".json")
    box.put(question, marshal.dumps(dict(order)))
    command = Command(
        argv=[
            *box.tools.python,
            *("-I", "-S", "-X", "utf8", "-c", _START),
            *(str(box.tools.package), module, str(question), str(answer)),
        ],
        cwd=Path("/"),
        env=STAND_ALONE_ENV,
        time_limit_s=time_limit_s,
    )
    at_limit = memory.times_at_limit()
    with own_folder("look") as folder:
        log = folder / "log"
        finished = box.run(command, log)
        said = log.read_text(errors="replace").strip()
    if finished.timed_out:
        raise _StuckError(f"{cannot}: it took more than {time_limit_s:.0f} s")
    if not finished.ok:
        how = finished.signal or f"it ended with exit status {finished.exit_code}"
        last = said.splitlines()[-1] if said else how  # of what may be a traceback
        why = f"{cannot}: {(finished.start_error or last)[-2000:]}"
        killed = finished.start_error is not None or finished.signal == "SIGKILL"
        if finished.out_of_memory and killed:
            if memory.times_at_limit() > at_limit:  # of this job: a lesser environment fits in
                raise _StuckError(f"{cannot}: it took more memory than there may be for it")
            why = f"{cannot}: the host ran out of memory"
        raise SandboxError(why) if killed else _StuckError(why)
    try:
        return dict(json.loads(box.read(answer, _ANSWER_LIMIT_BYTES)))
    except ValueError as error:
        raise SandboxError(f"{cannot}: {error}") from error
