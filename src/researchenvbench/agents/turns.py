"""Commands in a build's box, one at a time: whoever decides by what the last one printed.

`Episode`, `replay` and mini-swe-agent stand on it. Each command runs in a shell of its own, to
its end; what it leaves running in the background is ended on this host, and lives on in a
container. What it printed goes to the build's log and is handed back, shortened; what was done
is kept as a step of the attempt's transcript as it is done.
"""

from __future__ import annotations

import hashlib
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import now
from ..errors import LimitReachedError
from ..sandbox import Command
from .transcript import TRANSCRIPT, Step, shortened, write_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..model_use import Tokens
    from . import Assignment

#: Of what a command printed, in characters, that are handed back: enough for a compiler's
#: words, little enough for a model to read.
OUTPUT_SHOWN = 20_000
#: No longer text is one argument of a program: MAX_ARG_STRLEN of Linux, less its last byte.
_LONGEST_BYTES = 128 * 1024 - 1
#: As shells say that a program could not be started.
NOT_STARTED = 126

#: Of a file, in characters: one argument of the shell that writes it, and all of them.
_PART, _MOST_WRITTEN = 30_000, 400_000
#: Path, parts of the content.
_WRITE = """
file=$1; shift
case $file in */*) mkdir -p -- "${file%/*}/" ;; esac && : > "$file" || exit 1
for part; do printf %s "$part" >> "$file" || exit 1; done
"""

#: bash where there is one. Found anew each time, since an agent may install it.
_SHELL = 'if command -v bash >/dev/null; then exec bash -c "$@"; else exec sh -c "$@"; fi'
#: Mark, folder, command. The shell says at its end in which folder it is: nothing is written
#: for it, so nothing of it is in the environment. Where the command has put the shell's own
#: output elsewhere nothing is said, as that would be written there.
_THERE = """
reb_out=$(readlink "/proc/$$/fd/1"); reb_mark=$1
trap '[ "$(readlink "/proc/$$/fd/1")" != "$reb_out" ] || printf "%s%s\\n" "$reb_mark" "$PWD"' EXIT
cd -- "$2" || echo "The command runs in $PWD instead."
reb_command=$3; set --
eval "$reb_command"
"""


class OutOfTimeError(LimitReachedError):
    """The time in which to build is over; what is there is judged."""


@dataclass(frozen=True)
class Turn:
    """How a command ended."""

    output: str  #: what it printed, both streams; the head and the tail of much
    exit_status: int | None  #: as a shell has it, 128 and more for a signal; None if timed out
    seconds: float
    timed_out: bool  #: it was ended at its limit, or since the time for building was over


class Turns:
    """The commands of one build."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        keeps_cwd: bool = False,
        shown: int = OUTPUT_SHOWN,
        environment: Mapping[str, str] | None = None,
        deadline: Callable[[], float] | None = None,
    ) -> None:
        """Begin a transcript.

        Args:
            assignment: Where commands run.
            keeps_cwd: Whether a command starts in the folder in which the last one ended, as
                in a shell, and not in the repository.
            shown: Of what a command printed, in characters, that are handed back.
            environment: Further variables of every command.
            deadline: In place of the assignment's, on the clock of time.monotonic(), where it
                is not known from the beginning.
        """
        self.steps: list[Step] = []
        self.transcript = assignment.log.parent.parent / TRANSCRIPT
        self._assignment = assignment
        self._keeps_cwd = keeps_cwd
        self._shown = shown
        self._environment = {**assignment.environment, **(environment or {})}
        self._deadline = deadline or (lambda: assignment.deadline)
        self._cwd = assignment.box.layout.repo
        write_steps(self.transcript, ())

    @property
    def left_s(self) -> float:
        """Seconds that are left to build in."""
        return max(0.0, self._deadline() - time.monotonic())

    @property
    def cwd(self) -> Path:
        """Where the next command runs."""
        return self._cwd

    def step(
        self,
        command: str,
        *,
        time_limit_s: float | None = None,
        cwd: Path | None = None,
        said: str = "",
        turn: str = "",
        tokens: Tokens | None = None,
    ) -> Turn:
        """Run a command in a shell, to its end or its limit.

        Args:
            command: For bash, or for sh where there is no bash.
            time_limit_s: When it is ended; default: with the time for building.
            cwd: Where it starts; default: see `keeps_cwd`.
            said: What whoever asks for it said before, for the transcript.
            turn: The id of the model's answer that asks for it, likewise.
            tokens: What that answer used, likewise.

        Raises:
            OutOfTimeError: there is no time left to run it in.
            LimitReachedError: the build has taken more of the host than it may.
        """
        command = _clean(command)
        left_s = self.left_s
        if left_s <= 0:
            raise OutOfTimeError(
                "the time in which to build is over", advice="what is there is what is judged"
            )
        began, where = now(), str(cwd or self._cwd)
        self._assignment.say(f"step {len(self.steps) + 1}: {_first_line(command)}")
        done = self._run(command, min(left_s, time_limit_s or left_s), cwd)
        self.keep(
            Step(
                number=len(self.steps) + 1,
                kind="command",
                began=began,
                seconds=round(done.seconds, 3),
                command=command,
                cwd=_clean(where),
                exit_status=done.exit_status,
                failed=done.exit_status != 0,
                output=shortened(done.output),
                said=shortened(_clean(said)),
                turn=_clean(turn),
                tokens=tokens,
            )
        )
        return done

    def write(self, path: Path, content: str) -> Turn:
        """Write a file in the box, with the folders that it needs; one that is there stays its own.

        Its permissions and what links to it stay, as they do where an editor writes. It is no
        step: whoever writes says what it was.
        """
        parts = [content[at : at + _PART] for at in range(0, len(content), _PART)]
        if "\0" in content or len(content) > _MOST_WRITTEN:
            return Turn("such a file cannot be written by a shell", NOT_STARTED, 0.0, False)
        argv = ["/bin/sh", "-c", _WRITE, "sh", str(path), *parts]
        return self._finish(argv, self._assignment.box.layout.repo, self.left_s)

    def keep(self, step: Step) -> None:
        """Add a step to the transcript."""
        self.steps.append(step)
        with self.transcript.open("a", encoding="utf-8") as stream:
            stream.write(step.model_dump_json(exclude_defaults=True) + "\n")

    def _run(self, command: str, time_limit_s: float, cwd: Path | None) -> Turn:
        box = self._assignment.box
        if "\0" in command:
            return Turn("a command cannot hold a NUL character", NOT_STARTED, 0.0, False)
        if len(command.encode()) > _LONGEST_BYTES:
            words = f"the command is longer than {_LONGEST_BYTES} bytes: write a file in parts"
            return Turn(words, NOT_STARTED, 0.0, False)
        mark = ""
        argv = ["/bin/sh", "-c", _SHELL, "sh", command]
        if self._keeps_cwd:
            # The same each time: a build that is gone on with asks for the same commands.
            drawn = hashlib.sha256(f"{len(self.steps)} {command}".encode()).hexdigest()
            mark = f"[folder {drawn[:16]}] "
            argv = [*argv[:-1], _THERE, "shell", mark, str(cwd or self._cwd), command]
        where = box.layout.repo if self._keeps_cwd else cwd or box.layout.repo
        return self._finish(argv, where, time_limit_s, mark.encode())

    def _finish(self, argv: list[str], cwd: Path, time_limit_s: float, mark: bytes = b"") -> Turn:
        box, log = self._assignment.box, self._assignment.log
        begin = log.stat().st_size if log.exists() else 0
        finished = box.run(
            Command(argv=argv, cwd=cwd, env=self._environment, time_limit_s=time_limit_s),
            log,
            append=True,
        )
        output = printed(log, begin, self._shown, mark)
        if output.folder:
            self._cwd = Path(output.folder)
        if finished.start_error:
            return Turn(finished.start_error, NOT_STARTED, finished.seconds, False)
        timed_out = finished.timed_out or finished.overdue or finished.stopped
        status = finished.exit_code
        if status is None and not timed_out:
            status = 128 + _number(finished.signal)
        return Turn(output.text, None if timed_out else status, finished.seconds, timed_out)


@dataclass(frozen=True)
class _Printed:
    text: str
    folder: str = ""


def printed(log: Path, begin: int, limit: int, mark: bytes = b"") -> _Printed:
    """What lies in `log` from the byte `begin` on, its head and its tail if it is long.

    What follows `mark` on its line is the shell's folder, and no part of the output.
    """
    most = 4 * limit  # no character has more bytes
    with log.open("rb") as stream:
        size = stream.seek(0, 2) - begin
        stream.seek(begin)
        if size <= 2 * most:
            content, left_out = stream.read(), 0
        else:
            head = stream.read(most)
            stream.seek(begin + size - most)
            content, left_out = stream.read(), size
    folder = ""
    if mark:
        content, found, rest = content.rpartition(mark)
        if found:
            line, _, after = rest.partition(b"\n")
            # What came after it is of programs that the shell did not wait for.
            folder, content = line.decode(errors="surrogateescape"), content + after
        else:
            content = rest
    text = content.decode(errors="replace")
    if left_out:
        half = limit // 2
        first, last = head.decode(errors="replace")[:half], text[-half:]
        shown_bytes = len(first.encode()) + len(last.encode())
        text = f"{first}\n[{max(0, size - shown_bytes)} bytes left out]\n{last}"
        return _Printed(text, folder)
    return _Printed(shortened(text, limit), folder)


def _first_line(command: str, width: int = 200) -> str:
    first, _, more = command.strip().partition("\n")
    return first[:width] + (" …" if more or len(first) > width else "")


def _number(name: str | None) -> int:
    """The number of a signal by its name, or by the words that stand for one without a name."""
    if name is None:
        return 0
    if known := re.fullmatch(r"signal (\d+)", name):
        return int(known[1])
    return int(getattr(signal, name, 0))


def _clean(text: str) -> str:
    """Text that can be written as UTF-8: JSON can hold halves of characters."""
    return text.encode(errors="replace").decode()
