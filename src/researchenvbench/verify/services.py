"""The processes beside which a stage's command runs, and when they are ready."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..diagnose import last_lines, tail
from ..sandbox import Command, Running
from ..task import fill

if TYPE_CHECKING:
    from ..sandbox import StageBox
    from ..task import Service, Stage

_POLL_S = 0.2
_PROBE = Path(__file__).parent / "probes" / "ready.py"


class Services:
    """Starts a stage's services in their order; ends them all when left."""

    def __init__(
        self,
        stage: Stage,
        box: StageBox,
        values: dict[str, str],
        environment: dict[str, str],
        logs: Path,
        stage_name: str,
    ) -> None:
        self._stage, self._box, self._values = stage, box, values
        self._environment, self._folder, self._stage_name = environment, logs, stage_name
        self._running: list[tuple[Service, Running]] = []
        self.last_log: Path | None = None  #: of the service that was started last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _service, running in reversed(self._running):
            running.stop()

    def logs(self, command_log: Path) -> dict[str | None, Path]:
        """Where the command (None) and each service print."""
        return {None: command_log} | {service.name: run.log for service, run in self._running}

    def wait_until_ready(self) -> str | None:
        """Start each and wait for it; the reason in words where one does not get ready."""
        for service in self._stage.services:
            self.last_log = self._folder / f"{self._stage_name}-{service.name}.log"
            running = self._box.start(
                Command(
                    argv=[fill(argument, self._values) for argument in service.command],
                    cwd=Path(fill(service.folder, self._values)),
                    env={
                        **self._environment,
                        **{key: fill(text, self._values) for key, text in service.env.items()},
                    },
                    time_limit_s=service.ready_within_s + self._stage.time_limit_s,
                ),
                self.last_log,
            )
            self._running.append((service, running))
            if problem := self._wait(service, running):
                return problem
        return None

    def _wait(self, service: Service, running: Running) -> str | None:
        deadline = time.monotonic() + service.ready_within_s
        while not self._is_ready(service, running):
            ended = running.poll()
            if ended is not None:
                how = ended.start_error or ended.signal or f"exit status {ended.exit_code}"
                said = last_lines(running.log)
                return f"the service {service.name} ended before it was ready ({how}): {said}"
            if time.monotonic() > deadline:
                return (
                    f"the service {service.name} was not ready within "
                    f"{service.ready_within_s:.0f} s: {last_lines(running.log)}"
                )
            time.sleep(_POLL_S)
        return None

    def _is_ready(self, service: Service, running: Running) -> bool:
        if service.ready_output and not re.search(
            service.ready_output, tail(running.log), re.MULTILINE
        ):
            return False
        if not (service.ready_url or service.ready_port):
            return True
        # Asked from inside the box, which may have a network of its own, by the harness's
        # interpreter: the judged one is not asked whether the judged service works.
        log = self._folder / f"{self._stage_name}-{service.name}-ready.log"
        asked = fill(service.ready_url or "", self._values)
        probe = self._box.layout.tools / _PROBE.name
        self._box.put(probe, _PROBE.read_bytes())
        finished = self._box.run(
            Command(
                argv=[*self._box.tools.python, "-I", "-S", str(probe), asked, self._values["port"]],
                cwd=self._box.layout.work,
                env={"PATH": self._environment["PATH"]},
                time_limit_s=10,
            ),
            log,
        )
        if not finished.ok:
            return False
        try:
            return bool(json.loads(tail(log))["ready"])
        except (ValueError, KeyError, TypeError):
            return False
