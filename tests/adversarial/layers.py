"""One frozen environment, and each trick a layer on it that is judged by the real product.

The base is built once by the task's own recipe. A trick's `plant.sh` then does what an agent
would have done before its end; the state that it leaves is frozen and judged as any attempt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uv

from researchenvbench import __version__
from researchenvbench.attempt import Level, StoredResult
from researchenvbench.building import read_frozen_report
from researchenvbench.errors import SandboxError
from researchenvbench.process import Command
from researchenvbench.run.job import AttemptRun
from researchenvbench.sandbox.containers.given import labels
from researchenvbench.sandbox.containers.journal import Journal
from researchenvbench.sandbox.containers.sandbox import ContainerSandbox
from researchenvbench.sandbox.engines.engine import LABEL
from researchenvbench.sandbox.local.box import LocalBox

from .catalogue import HERE, PYENV, Trick

if TYPE_CHECKING:
    from researchenvbench.attempt import Environment, LevelResult, Record
    from researchenvbench.sandbox import Layout

PLANT_LIMIT_S = 60.0


@dataclass
class Judged:
    """What the product said of an environment, and how long that took."""

    record: Record
    seconds: float
    ran: bool  #: something was started outside of a box that only a box may start

    def cost_s(self, imports: bool) -> float:
        """Seconds that judging took, with or without those of C0."""
        return self.seconds - (0.0 if imports else self.record.results[Level.C0].seconds)


@dataclass
class Place:
    """Where the environment's parts are, by paths that its programs see."""

    layout: Layout
    kit: str
    uv: str
    base_python: str
    bait: str

    def variables(self) -> dict[str, str]:
        """What plants are told."""
        layout = self.layout
        return {
            "REPO": str(layout.repo),
            "PREFIX": str(layout.env),
            "PYTHON": str(layout.env / "bin" / "python"),
            "SITE": str(layout.env / "lib" / "python3.11" / "site-packages"),
            "HOME": str(layout.home),
            "REPORT": str(layout.report),
            "WORK": str(layout.work),
            "TOOLS": str(layout.tools),
            "BOX": "/workspace" if layout.root == Path("/") else str(layout.root),
            "KIT": self.kit,
            "WHEELS": f"{self.kit}/wheels",
            "UV": self.uv,
            "BASE_PYTHON": self.base_python,
            "BAIT": self.bait,
            "PYENV": str(PYENV),
        }


PLANT = ["bash", "-euc", '. "$KIT/functions.sh"; . "$KIT/plant.sh"']


class Layers:
    """The base, and its layers; what differs between sandboxes is in the two below."""

    def __init__(self, attempt: Path, tasks: dict[str, Path]) -> None:
        self.attempt, self.tasks = attempt, tasks
        self.run_folder = attempt.parent.parent
        self.bait = self.run_folder / "bait"
        self.kept = self.run_folder / "kept"
        _copy(attempt, self.kept)
        self._untouched: dict[str, Judged] = {}

    def untouched(self, task: str) -> Judged:
        """The base itself, judged as a variant of the task, once."""
        if not self._untouched:
            # What is judged first waits for tools to be unpacked and for files to be read.
            self._judged(Trick(HERE / "task", "nothing", ""))
        if task not in self._untouched:
            self._untouched[task] = self._judged(Trick(HERE / "task", "nothing", "", task=task))
        return self._untouched[task]

    def judged(self, trick: Trick) -> Judged:
        """The base with the trick on it."""
        base = self.untouched(trick.task)  # before the trick, while the machine is as busy
        return self._judged(trick, None if trick.imports else base.record.results[Level.C0])

    def _judged(self, trick: Trick, imports: LevelResult | None = None) -> Judged:
        """Put the attempt right, plant, freeze, judge; C0 only where it is not there already."""
        _remove(self.attempt)
        _copy(self.kept, self.attempt)
        job = self.attempt / "job.json"
        job.write_text(
            job.read_text().replace(str(self.tasks["line"]), str(self.tasks[trick.task]))
        )
        run = AttemptRun(self.attempt)
        frozen = self.plant(run, trick)
        report, report_error = read_frozen_report(
            lambda: run.sandbox.stage_box(self.attempt, network=False, gpus=())
        )
        built = run.folder.load_build()
        assert built is not None
        built.model_copy(
            update={"environment": frozen, "report": report, "report_error": report_error}
        ).save(run.folder.build_file)
        if imports is not None:  # kept, as of a verification that was interrupted after C0
            file = run.folder.result_file(Level.C0)
            file.parent.mkdir()
            StoredResult(
                reb_version=__version__,
                environment_digest=frozen.digest,
                task_digest=run.task.digest,
                result=imports,
            ).save(file)
        self.bait.unlink(missing_ok=True)
        started = time.monotonic()
        AttemptRun(self.attempt).verify()
        seconds = time.monotonic() - started
        record = run.folder.load_record()  # what is told of it must have been kept, too
        assert record is not None
        return Judged(record, seconds, self.bait.exists())

    def plant(self, run: AttemptRun, trick: Trick) -> Environment:
        """Run the trick's script where the agent would have, and freeze what it leaves."""
        raise NotImplementedError

    def kit_of(self, trick: Trick) -> Path:
        """What plants need, wheels among it, in a folder of this host."""
        kit = self.run_folder / "kit"
        shutil.rmtree(kit, ignore_errors=True)
        shutil.copytree(HERE / "kit", kit)
        shutil.copy(trick.plant, kit / "plant.sh")
        shutil.copytree(self.tasks["line"] / "wheels", kit / "wheels")
        return kit

    def remove(self) -> None:
        """What was planted, some of which other programs cannot remove."""
        _remove(self.attempt)


class LocalLayers(Layers):
    """Layers on an attempt of this host.

    An environment cannot be moved, and a layer over it would have to be seen by the harness
    as well as by the boxes. So each trick is planted into the attempt itself, which is put
    right again before the next.
    """

    def plant(self, run: AttemptRun, trick: Trick) -> Environment:
        """By a program of a build's box."""
        layout = run.sandbox.layout(self.attempt)
        kit = layout.tmp / "kit"
        shutil.copytree(self.kit_of(trick), kit)
        place = Place(
            layout,
            kit=str(kit),
            uv=uv.find_uv_bin(),
            base_python=os.path.realpath(sys.executable),
            bait=str(self.bait),
        )
        environment = {"PATH": os.environ["PATH"], **place.variables()}
        log = self.attempt / "logs" / "plant.log"
        finished = LocalBox(layout).run(
            Command(PLANT, layout.repo, environment, PLANT_LIMIT_S), log
        )
        assert finished.ok, log.read_text()
        return run.sandbox.freeze(self.attempt)


class ContainerLayers(Layers):
    """Layers of an image: each trick is a commit on that of the base."""

    def plant(self, run: AttemptRun, trick: Trick) -> Environment:
        """By a program in a container of the frozen image."""
        assert isinstance(run.sandbox, ContainerSandbox)
        engine, base = run.sandbox.engine, run.sandbox.environment(self.attempt)
        layout = run.sandbox.layout(self.attempt)
        container = engine.ask(
            *("run", "--detach", "--network=none", "--stop-signal=KILL", *engine.run_flags),
            *labels("build", self.attempt),
            *("--workdir", "/", "--entrypoint", "", base.digest, "/bin/sleep", "86400"),
        ).splitlines()[-1]
        Journal(
            container, "", base.digest, time.time(), path=self.attempt / "container.json"
        ).save()
        place = Place(
            layout,
            kit="/var/tmp/kit",
            uv="uv",
            base_python="/usr/bin/python3",
            bait="/var/tmp/bait",
        )
        engine.call("cp", str(self.kit_of(trick)), f"{container}:{place.kit}")
        variables = [f"--env={name}={value}" for name, value in place.variables().items()]
        try:
            engine.call("exec", *variables, "--workdir", str(layout.repo), container, *PLANT)
        except SandboxError as error:
            raise AssertionError(f"the plant failed: {error}") from error
        return run.sandbox.freeze(self.attempt)

    def remove(self) -> None:
        """All images and containers of the attempt."""
        sandbox = AttemptRun(self.attempt).sandbox
        assert isinstance(sandbox, ContainerSandbox)
        sandbox.discard(self.attempt)
        mine = f"label={LABEL}.attempt={self.attempt.resolve()}"
        for image in sandbox.engine.listed("image", "ls", "--all", "--filter", mine):
            with suppress(SandboxError):  # removed with one above it
                sandbox.engine.call("rmi", "--force", image)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", "--", str(source), str(target)], check=True)


def _remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", "--", str(folder)], check=True)
