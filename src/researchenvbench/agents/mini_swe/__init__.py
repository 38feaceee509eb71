"""mini-swe-agent: its own loop and models, with commands run in the box by `Turns`.

Its program runs beside the harness, in an environment of its own, and asks for each command
over a pipe (`driver.py`). So nothing of it is in the box, and a box without Python will do.
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from ...errors import HostError, RebError
from ...model_use import Tokens, Wire
from ...owner import own_folder
from ...sandbox.host_environment import host_environment
from ...schema import suggest
from ..ending import Watch, end_of, has_report, outcome
from ..faults import Ended
from ..program import OUTPUT_LOG
from ..task_text import TASK_TEXT, VERSION, task_text
from ..transcript import TRANSCRIPT, Step, read_steps
from ..turns import OutOfTimeError, Turns
from . import installing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...sandbox import Layout, Program
    from ...task import Task
    from .. import AgentOutcome, Assignment
    from ..model import ModelAccess, ModelChoice

#: In the attempt's folder: everything that the loop keeps of itself.
TRAJECTORY = "trajectory.json"
DRIVER = Path(__file__).with_name("driver.py")
#: The task and how the loop works, in the template language of mini-swe-agent.
TEXT = Path(__file__).with_name("text.md")
#: Those of mini-swe-agent's own configuration: nothing is paged, and no bar is drawn.
_VARIABLES = {
    "PAGER": "cat",
    "MANPAGER": "cat",
    "LESS": "-R",
    "PIP_PROGRESS_BAR": "off",
    "TQDM_DISABLE": "1",
}
#: Of a command's output, in characters, as in mini-swe-agent's own configuration.
_SHOWN = 10_000
#: A single command is ended after it; building a large extension takes less.
COMMAND_LIMIT_S = 1800.0
DEFAULT_WIRE: Wire = "openai-chat"
#: Its loop ends after so many calls of the model, as in its own benchmarks.
STEPS = 250
#: No output of the program and no call of the model for so long: it hangs.
_QUIET_S = 1800.0
_LOOK_S = 1.0
_LONGEST_LINE = 64 * 1024 * 1024
#: How its loop ends without a fault.
_SUBMITTED = "Submitted"


def wire_of(options: Mapping[str, str]) -> Wire:
    """How it is to speak to the model, which it can do in every way that the relay knows.

    Raises:
        RebError: there is no such protocol.
    """
    wire = options.get("wire", DEFAULT_WIRE)
    if wire not in get_args(Wire):
        raise RebError(
            f"wire: there is no protocol {wire!r}{suggest(wire, get_args(Wire))}",
            advice=f"there are: {', '.join(get_args(Wire))}",
        )
    return cast("Wire", wire)


class MiniSweAgent:
    """The agent."""

    name = "mini_swe"
    built_in = False
    needs_recipe = False
    sees_task = True
    on_host = True

    def __init__(
        self, model: ModelChoice | None, steps: str = str(STEPS), wire: str = DEFAULT_WIRE
    ) -> None:
        """Work with a model, for so many of its answers at most.

        Raises:
            RebError: no model is named, or the steps are no number, or there is no such protocol.
        """
        wire_of({"wire": wire})
        if model is None:
            raise RebError(
                "the agent mini_swe works with a language model, and none is named",
                advice="name one: --model NAME, or --preset (reb agents list shows them)",
            )
        if not (steps.isascii() and steps.isdigit()) or int(steps) == 0:
            raise RebError(f"steps: {steps!r} is no number of steps", advice="such as steps=250")
        self.model: ModelChoice | None = model
        self.version = installing.version()
        self._budget = model.limits
        self._steps = int(steps)

    def digest(self, task: Task | None) -> str:  # noqa: ARG002  # the same for every task
        """Digest of its program, our driver, the model, its address and the text."""
        model = self.model
        words = (
            installing.REQUIREMENTS.read_text(),
            DRIVER.read_text(),
            TEXT.read_text(),
            model.decides if model else None,
            self._steps,
            VERSION,
        )
        return hashlib.sha256(repr(words).encode()).hexdigest()

    def program(self, say: Callable[[str], None]) -> Program | None:
        """Nothing of it is in the box; it is installed on this host where it is not yet.

        Raises:
            RebError: it cannot be installed.
        """
        installing.install(say)
        return None

    def keeps(self, layout: Layout) -> tuple[str, ...]:  # noqa: ARG002  # nothing is in the box
        """Nothing."""
        return ()

    def steps(self, folder: Path, kept: Sequence[Path]) -> list[Step]:  # noqa: ARG002
        """The common transcript, which was written as the commands ran."""
        return read_steps(folder / TRANSCRIPT)

    def build(self, assignment: Assignment) -> AgentOutcome:
        """Have the loop run until it ends, hangs, or a limit is reached."""
        access = assignment.model
        folder = assignment.log.parent.parent
        if access is None:
            raise RebError("mini-swe-agent was given no model to ask")
        text = task_text(assignment, budget=self._budget)
        (folder / TASK_TEXT).write_text(text, encoding="utf-8")
        order = {
            "task": text,
            "template": TEXT.read_text(encoding="utf-8"),
            "model": access.name,
            "wire": access.wire,
            "address": access.address,
            "token": access.token,
            "steps": self._steps,
            "command_minutes": round(COMMAND_LIMIT_S / 60),
            "trajectory": str(folder / TRAJECTORY),
        }
        assignment.say(f"mini-swe-agent {self.version}, {access.name}")
        python = installing.install(assignment.say)
        with started(
            [str(python), "-I", str(DRIVER)], assignment.log.parent / OUTPUT_LOG
        ) as driver:
            return Conversation(driver, assignment, access).held(order)


class Driver:
    """The loop's program, on the other end of two pipes."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        assert program.stdout is not None  # noqa: S101 - by the arguments of Popen
        self._selector.register(program.stdout, selectors.EVENT_READ)

    def tell(self, line: dict[str, Any]) -> None:
        """Write a line; one that has died will be seen by its output's end."""
        assert self._program.stdin is not None  # noqa: S101 - by the arguments of Popen
        with suppress(BrokenPipeError):
            self._program.stdin.write(json.dumps(line).encode() + b"\n")
            self._program.stdin.flush()

    def read(self, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """The next line; None where the program has ended, or `stop` says to wait no longer.

        `stop` is asked about once a second.
        """
        assert self._program.stdout is not None  # noqa: S101 - by the arguments of Popen
        while b"\n" not in self._rest:
            if stop():
                return None
            if not self._selector.select(_LOOK_S):
                continue
            chunk = os.read(self._program.stdout.fileno(), 1 << 20)
            if not chunk or len(self._rest) > _LONGEST_LINE:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def end(self) -> tuple[int | None, str | None]:
        """End it, where it has not; its exit status, or the signal that ended it."""
        with suppress(subprocess.TimeoutExpired):
            self._program.wait(_LOOK_S)
        with suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        status = self._program.wait()
        if status < 0:
            return None, signal.Signals(-status).name
        return status, None


@contextmanager
def started(argv: list[str], log: Path) -> Iterator[Driver]:
    """The program that runs the loop, with nothing of this user's configuration.

    What it prints is added to `log`. It ends with the context, and when the harness dies, since
    its input ends then.

    Raises:
        HostError: it cannot be started.
    """
    host = host_environment()
    with own_folder("agent") as home, log.open("ab") as errors:
        try:
            program = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=home,
                env={
                    "PATH": host.path,
                    "HOME": str(home),
                    "TMPDIR": str(home),
                    "LANG": "C.UTF-8",
                    # The relay is on this host, whatever proxy leads elsewhere.
                    "NO_PROXY": "127.0.0.1,localhost",
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                    "MSWEA_GLOBAL_CONFIG_DIR": str(home / "mini-swe-agent"),
                    "MSWEA_SILENT_STARTUP": "1",
                    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "3",
                },
                start_new_session=True,  # Ctrl-C is for the harness, which then ends it
            )
        except OSError as error:
            raise HostError(f"{argv[0]} cannot be started: {error.strerror}") from error
        driver = Driver(program)
        try:
            yield driver
        finally:
            driver.end()
            for pipe in (program.stdin, program.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


class Conversation:
    """What is said between the loop and the harness, from the order to the end."""

    def __init__(self, driver: Driver, assignment: Assignment, access: ModelAccess) -> None:
        self._driver, self._assignment, self._access = driver, assignment, access
        self._watch = Watch(assignment, access, assignment.log, _QUIET_S)
        self._turns = Turns(
            assignment,
            shown=_SHOWN,
            environment=_VARIABLES,
            deadline=lambda: assignment.deadline + access.relay.waited_s,
        )

    def held(self, order: dict[str, Any]) -> AgentOutcome:
        """Give the order, carry out what is asked for, and say how it ended."""
        self._driver.tell(order)
        ended: dict[str, Any] = {}
        while not ended and (asked := self._driver.read(self._watch.stop)) is not None:
            if asked.get("ask") == "execute":
                self._driver.tell(self._executed(asked))
            else:
                ended = asked
        exit_code, by_signal = self._driver.end()
        return self._outcome(str(ended.get("status", "")), exit_code, by_signal)

    def _executed(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            turn = self._turns.step(
                str(asked.get("command", "")),
                time_limit_s=COMMAND_LIMIT_S,
                said=str(asked.get("said") or ""),
                turn=str(asked.get("turn") or ""),
                tokens=tokens_of(asked.get("usage")),
            )
        except OutOfTimeError as over:
            return {"over": str(over.args[0])}
        self._watch.moved()
        return {
            "output": turn.output,
            "exit_status": turn.exit_status,
            "timed_out": turn.timed_out,
        }

    def _outcome(self, status: str, exit_code: int | None, by_signal: str | None) -> AgentOutcome:
        over = status == "TimeExceeded" and self._turns.left_s <= 0
        ended = Ended(
            exit_code=exit_code if status in ("", _SUBMITTED) else 1,
            signal=by_signal,
            well=status in (_SUBMITTED, "LimitsExceeded"),
            report=has_report(self._assignment),
            stopped_for=self._watch.why or ("time_limit" if over else ""),
        )
        fault, why = end_of(ended, self._access, needs_model=True)
        if fault == "crashed" and status:
            why = f"its loop ended by {status}"
        elif fault is None and status == "LimitsExceeded":
            fault, why = "budget", "all answers of the model that its loop may ask for"
        return outcome(fault, why, 0 if status == _SUBMITTED else ended.exit_code)


def tokens_of(usage: Any) -> Tokens | None:
    """What an answer used, from the words that litellm has for all providers.

    As of litellm 1.110, `Usage`: `prompt_tokens` includes what was read from a cache and
    written to it; a Responses answer has `input_tokens` and the like.
    """
    if not isinstance(usage, dict):
        return None
    read = _count(usage, "prompt_tokens", "input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    written = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    cached = _count(details, "cached_tokens")
    cache_write = _count(details, "cache_creation_tokens") or _count(
        usage, "cache_creation_input_tokens"
    )
    return Tokens(
        input=max(0, read - cached - cache_write),
        cached=cached,
        cache_write=cache_write,
        output=_count(usage, "completion_tokens", "output_tokens"),
        reasoning=_count(written, "reasoning_tokens"),
    )


def _count(table: Any, *names: str) -> int:
    for name in names:
        value = table.get(name) if isinstance(table, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
