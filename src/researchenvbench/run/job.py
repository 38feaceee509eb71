"""One phase of one attempt, as a self-contained command.

`reb job FOLDER` reads the folder's `job.json`, does the work, and writes the results there.
It can be killed at any moment and run again; whatever can run a command can run it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from .. import __version__
from ..agents import make_agent
from ..attempt import (
    AttemptStatus,
    BuildResult,
    EventLog,
    Finding,
    Level,
    LevelResult,
    Owner,
    Record,
    Sizes,
    StoredResult,
    Verdict,
    now,
)
from ..building import Building, build, build_key, hardware_shown, host_facts, read_frozen_report
from ..errors import (
    HostError,
    RebError,
    SandboxError,
    SourceError,
    SourceNotAvailableError,
)
from ..network_use import NetworkUse
from ..sandbox import NO_ASSETS, make_sandbox
from ..sandbox.host_environment import host_environment
from ..source import fetch_source
from ..taskfile import load_task
from ..verify.assets import same_assets
from ..verify.pyramid import STAGES, Judgement, verify, without_source
from ..verify.subject import Subject
from .assets import stages_to_run, with_assets
from .done import build_to_do
from .records import judged, new_record
from .store import AttemptFolder, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..agents import Agent
    from ..assets import Choice
    from ..attempt import Environment
    from ..sandbox import HostEnvironment, Sandbox
    from ..source import Snapshot
    from ..task import StageName, Task


class AttemptRun:
    """The phases of one attempt, with what they share."""

    def __init__(self, folder: Path) -> None:
        """Load what the attempt is about.

        Raises:
            RebError: the job or its task cannot be read, or the source cannot be had.
        """
        self.folder = AttemptFolder(folder.absolute())
        if self.folder.path.parent.name != "attempts":
            raise RebError(
                f"{self.folder.path} is no attempt of a run: those lie in RUN/attempts/",
                advice="reb run names the folders of its attempts",
            )
        self.job = Job.load(self.folder.job_file)
        self.task: Task = load_task(Path(self.job.task_folder))
        self.host: HostEnvironment = host_environment()
        self.sandbox: Sandbox = make_sandbox(
            self.job.sandbox, self.job.sandbox_options, self.job.network
        )
        self.agent: Agent = make_agent(self.job.agent, self.job.agent_options, self.job.model)
        self.say: Callable[..., None] = EventLog(self.folder.events_file)

    def source(self) -> Snapshot:
        """The pristine source."""
        self.say("fetching the source")
        return fetch_source(self.task, installs=self.host.installs)

    def build(self, *, needed: bool = False) -> BuildResult:
        """Phase 1, unless it is done; `needed` is the environment where all is to be judged."""
        why = build_to_do(self.folder, self.job, self.task, self.agent, needed=needed)
        if not why and (done := self.folder.load_build()):
            return done
        started, clock = now(), time.monotonic()
        digest = ""
        try:
            snapshot = self.source()
            digest = snapshot.digest
            key = build_key(
                self.task,
                snapshot,
                self.agent,
                self.sandbox,
                self.job.build_time_limit_s,
                self.job.build_gpus,
            )
            if self.folder.build_file.exists() or not self.sandbox.resumes(self.folder.path, key):
                self.folder.supersede()
                self.sandbox.discard(self.folder.path)
            result = build(
                self.folder.path,
                self.task,
                snapshot,
                self.agent,
                self.sandbox,
                self.host,
                time_limit_s=self.job.build_time_limit_s,
                build_gpus=self.job.build_gpus,
                say=self.say,
            )
        except (SourceError, SandboxError, HostError, OSError) as error:
            result = BuildResult(
                reb_version=__version__,
                outcome="void",
                # A commit that nobody has any more is no fault of this host.
                owner=Owner.TASK if isinstance(error, SourceNotAvailableError) else Owner.HOST,
                reason=str(error),
                started=started,
                seconds=time.monotonic() - clock,
                task_digest=self.task.digest,
                source_digest=digest,
                agent=self.agent.name,
                agent_digest=self.agent.digest(self.task),
                build_gpus=self.job.build_gpus,
                network=NetworkUse(**dict(self.job.network)),
                host=host_facts(self.host),
            )
        return self.keep(result)

    def building(self) -> Building:
        """Phase 1, for whoever drives the build from outside; it is begun anew.

        Raises:
            SourceError: the source cannot be had.
        """
        snapshot = self.source()
        self.folder.supersede()
        self.sandbox.discard(self.folder.path)
        return Building(
            self.folder.path,
            self.task,
            snapshot,
            self.agent,
            self.sandbox,
            self.host,
            time_limit_s=self.job.build_time_limit_s,
            build_gpus=self.job.build_gpus,
            say=self.say,
        )

    def keep(self, result: BuildResult) -> BuildResult:
        """Write the end of phase 1 into the attempt's folder."""
        result = result.model_copy(update={"sandbox_options": self.job.sandbox_options})
        result.save(self.folder.build_file)
        return result

    def verify(self, *, reverify: bool = False) -> Record:
        """Phase 2: judge what phase 1 left, keeping the results that still hold.

        Raises:
            RebError: there is no build to verify, or its source or sandbox cannot be had.
        """
        done = self.folder.load_build()
        if done is None:
            raise RebError(
                f"{self.folder.path}: nothing was built here yet",
                advice=f"reb job {self.folder.path} --phase build",
            )
        if done.outcome == "void":
            record = self._void_record(done)
            record.save(self.folder.record_file)
            return record
        snapshot = self.source()
        self.say("looking at the environment")
        environment = self.sandbox.environment(self.folder.path)
        subject = self.subject(self.folder.path, snapshot)
        stale: list[str] = []

        def kept(level: Level) -> LevelResult | None:
            stored = None if reverify else self.folder.load_result(level)
            if (
                stored is None
                or stored.environment_digest != environment.digest
                or stored.task_digest != self.task.digest
                or _may_change(stored.result)
                or not _same_assets(subject, stored.result)
            ):
                return None
            if stored.reb_version != __version__:
                stale.append(level)
            return stored.result

        def keep(result: LevelResult) -> None:
            path = self.folder.result_file(result.level)
            path.parent.mkdir(exist_ok=True)
            StoredResult(
                reb_version=__version__,
                environment_digest=environment.digest,
                task_digest=self.task.digest,
                result=result,
            ).save(path)

        judgement = verify(
            subject,
            subject.report.python_path if subject.report else None,
            frameworks=self.task.frameworks,
            hardware=hardware_shown(done),
            kept=kept,
            keep=keep,
        )
        record = self.record(done, environment, judgement, stale=bool(stale))
        record.save(self.folder.record_file)
        failed = any(result.verdict is Verdict.FAILED for result in record.results.values())
        if self.job.keep == "none" or (self.job.keep == "failed" and not failed):
            self.say("removing the environment, as asked for")
            try:
                self.sandbox.discard(self.folder.path)
            except SandboxError as error:
                self.say(f"it could not be removed: {error.args[0]}")
        return record

    def subject(
        self,
        results_folder: Path,
        snapshot: Snapshot,
        *,
        stages: Sequence[StageName] | None = None,
        assets: Choice | None = None,
    ) -> Subject:
        """What is judged: this attempt's environment as it is now.

        Args:
            results_folder: Where results and logs are kept.
            snapshot: The pristine source.
            stages: What these read is fetched or made; by default all that this host can run,
                and none where no report says what would run them.
            assets: Which; default: as the run was asked for.
        """
        path, sandbox = self.folder.path, self.sandbox
        report, report_error = read_frozen_report(
            lambda: sandbox.stage_box(path, network=False, gpus=())
        )
        done = self.folder.load_build()
        if stages is None:
            reported = report is not None and report.python_path is not None
            stages = stages_to_run(self.task, tuple(Level)) if reported else ()
        # Elsewhere nothing is this host's, and a build that was taken up again started earlier.
        built_s = 0.0
        if done is not None and sandbox.name == "local":
            built_s = datetime.fromisoformat(done.started).timestamp()
        subject = Subject(
            folder=results_folder,
            open_box=lambda network=False, gpus=(), assets=NO_ASSETS: sandbox.stage_box(
                path, network=network, gpus=gpus, assets=assets
            ),
            host=self.host,
            snapshot=snapshot,
            task=self.task,
            report=report,
            report_error=report_error,
            built_ns=int(built_s) * 1_000_000_000,
            say=self.say,
        )
        return with_assets(subject, stages, assets or self.job.assets)

    def record(
        self,
        done: BuildResult,
        environment: Environment,
        judgement: Judgement,
        *,
        stale: bool = False,
    ) -> Record:
        """The whole of the attempt."""
        subject = judgement.subject
        interpreter = subject.interpreter
        sizes = Sizes(build_bytes=environment.size_bytes)
        if interpreter is not None:
            prefix, root = Path(interpreter.prefix), self.sandbox.layout(self.folder.path).root
            if prefix.is_relative_to(root):  # else it is the host's own
                sizes = sizes.model_copy(update={"prefix_bytes": judgement.prefix_bytes})
        frozen = done.environment
        if frozen is not None and frozen.digest != environment.digest:
            changed = Finding(
                kind="changed-after-freeze",
                what="the environment is not as the build left it",
                where=str(self.sandbox.layout(self.folder.path).root),
                why="the verdicts are of what is there now",
            )
            judgement = replace(judgement, findings=(*judgement.findings, changed))
        return judged(self._record(done, stale=stale), judgement, sizes)

    def _void_record(self, done: BuildResult) -> Record:
        if done.owner is Owner.TASK:
            # It keeps its places in the denominators: nobody can build it, today.
            why = done.reason.partition("\n")[0]
            return self._record(done, results=without_source(self.task, why))
        results = {
            level: LevelResult(
                level=level,
                verdict=Verdict.INCONCLUSIVE,
                owner=Owner.HOST,
                reason="the build is void",
            )
            for level in Level
        }
        return self._record(done, status=AttemptStatus.VOID, results=results)

    def _record(
        self,
        done: BuildResult,
        *,
        status: AttemptStatus = AttemptStatus.OK,
        results: Mapping[Level, LevelResult] = MappingProxyType({}),
        stale: bool = False,
    ) -> Record:
        """What every record of this attempt holds."""
        return new_record(
            self.task,
            self.host,
            suite=self.job.suite,
            attempt=self.job.attempt,
            source_digest=done.source_digest,
            agent=self.agent.name,
            sandbox=self.sandbox.name,
            status=status,
            started=done.started,
            build=done,
            results=dict(results),
            stale=stale,
        )


def _may_change(result: LevelResult) -> bool:
    """Inconclusive for want of something on this host, which may be there by now."""
    return result.verdict is Verdict.INCONCLUSIVE and result.owner in (Owner.HOST, Owner.ASSET)


def _same_assets(subject: Subject, result: LevelResult) -> bool:
    stage = STAGES.get(result.level)
    if subject.task is None or stage not in subject.task.stages:
        return True
    return same_assets(subject, subject.task.stages[stage], result)


@contextmanager
def working_on(folder: Path) -> Iterator[None]:
    """Nobody else works on the attempt in `folder` meanwhile.

    Raises:
        RebError: somebody does already.
    """
    lock = FileLock(folder.parent / f".{folder.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RebError(
            f"{folder}: another process is working on this attempt",
            advice="wait for it, or end the other `reb run`",
        ) from error
    try:
        yield
    finally:
        lock.release()


def run_job(folder: Path, phase: str, *, reverify: bool = False) -> None:
    """Do the phase `build`, `verify`, or `all` of the attempt in `folder`.

    Raises:
        RebError: it cannot be done; what was done before is kept.
    """
    with working_on(folder):
        attempt = AttemptRun(folder)
        if phase in ("build", "all"):
            attempt.build()
        if phase in ("verify", "all"):
            attempt.verify(reverify=reverify)
        attempt.say("done")
