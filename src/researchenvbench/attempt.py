"""What happened: the vocabulary of builds, verdicts, findings and records.

Everything that the project writes to disk about an attempt is one of these models, as JSON
with a schema version (`stored`). They hold facts and no behaviour; what a verdict means is
defined in `docs/protocol.md`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from .gpu_use import Canary, GpuUse  # noqa: TC001  # its models are checked by it
from .model_use import ModelUse  # noqa: TC001  # likewise
from .network_use import NetworkUse
from .stored import Stored

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationInfo

#: Raised with every change that an older reader would misread.
RECORD_SCHEMA = 1


class Level(StrEnum):
    """The six levels of the pyramid, from imports to honesty."""

    C0 = "C0"
    C1 = "C1"
    C2 = "C2"
    C3 = "C3"
    C4 = "C4"
    C5 = "C5"

    @property
    def label(self) -> str:
        """The level's name in tables."""
        return _LEVEL_LABELS[self]


_LEVEL_LABELS = {
    Level.C0: "imports",
    Level.C1: "CPU run",
    Level.C2: "hardware",
    Level.C3: "one GPU",
    Level.C4: "multi GPU",
    Level.C5: "honesty",
}


class Verdict(StrEnum):
    """What verification says of a level. There is no fifth."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"
    INCONCLUSIVE = "inconclusive"


class Owner(StrEnum):
    """Whose fault it is that a level did not pass."""

    AGENT = "agent"
    HOST = "host"
    ASSET = "asset"
    TASK = "task"
    UNKNOWN = "unknown"


class Want(StrEnum):
    """What a host lacks where a level is `inconclusive (host)`."""

    GPU = "gpu"
    MORE_GPUS = "more-gpus"
    WITNESS = "witness"  #: something that watches GPUs from outside
    LIBRARY = "library"
    PROGRAM = "program"
    DISK = "disk"
    SHARED_MEMORY = "shared-memory"
    SANDBOX = "sandbox"
    READER = "reader"

    @property
    def is_hardware(self) -> bool:
        """Only another host, or a later version, can change it; nothing that a user installs."""
        return self in (Want.GPU, Want.MORE_GPUS, Want.WITNESS)


class AttemptStatus(StrEnum):
    """What an attempt as a whole counts as."""

    OK = "ok"
    NO_REPORT = "no_report"
    DISQUALIFIED = "disqualified"
    VOID = "void"


def builder(agent: str, model: str) -> str:
    """An agent and its model, as tables name and tell them apart."""
    return f"{agent} with {model}" if model else agent


def now() -> str:
    """The time, in UTC, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- what the agent reports ------------------------------------------------------------


class Claim(Stored):
    """One thing that the agent says it made work."""

    capability: str
    value: Any = None
    command: str | None = None
    exit_code: int | None = None


class Report(Stored):
    """The agent's report: the fields of the paper, then ours. Null is 'not verified'."""

    python_path: str | None = None
    python_version: str | None = None
    torch_version: str | None = None
    cuda_available: bool | None = None
    gpu_count: int | None = None
    ddp_expected_ok: bool | None = None
    env_tool: Literal["conda", "uv", "pip", "poetry", "venv", "none"] | None = None
    env_name: str | None = None
    notes: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    claims: tuple[Claim, ...] = ()


#: How a build by a model ended otherwise than by itself and well; `agents.faults` has the list.
Fault = Literal[
    "overloaded",
    "provider_error",
    "unreachable",
    "stream_cut",
    "wrong_key",
    "no_credit",
    "unknown_model",
    "rejected",
    "uncounted",
    "not_recorded",
    "no_calls",
    "not_started",
    "refused",
    "context_exhausted",
    "crashed",
    "hung",
    "time_limit",
    "budget",
]


# --- what the build left ---------------------------------------------------------------


class FindingKind(StrEnum):
    """What a finding is of; `docs/protocol.md`, "Integrity", says when each disqualifies."""

    # The work tree.
    TRACKED_FILE_CHANGED = "tracked-file-changed"
    GENERATED_FILE_CHANGED = "generated-file-changed"
    WORK_TREE_REPLACED = "work-tree-replaced"
    COMMIT_MOVED = "commit-moved"
    COMMIT_UNKNOWN = "commit-unknown"
    HISTORY_REMOVED = "history-removed"
    GIT_CONFIGURATION = "git-configuration"
    CHECKER_CONFIGURATION = "checker-configuration"
    EDITED_FILE = "edited-file"
    EDITS_UNKNOWN = "edits-unknown"
    # Both.
    START_UP_HOOK = "start-up-hook"
    SHADOWING_MODULE = "shadowing-module"
    # The stages.
    OTHER_GPU = "other-gpu"
    GPU_NOT_FREED = "gpu-not-freed"
    # The environment.
    NO_INTERPRETER = "no-interpreter"
    INTERPRETER_WRAPPER_ALTERS = "interpreter-wrapper-alters"
    LOADER_VARIABLE = "loader-variable"
    FRAMEWORK_STUB = "framework-stub"
    FRAMEWORK_CHANGED = "framework-changed"
    DISTRIBUTION_CHANGED = "distribution-changed"
    ENVIRONMENT_UNUSABLE = "environment-unusable"
    CHANGED_AFTER_FREEZE = "changed-after-freeze"


class Finding(Stored):
    """Something in the environment or the work tree that a reader should know."""

    #: A word that is no `FindingKind` is a newer version's, from a record that it wrote.
    kind: FindingKind | str = Field(union_mode="left_to_right")
    what: str
    where: str = ""
    why: str = Field("", description="Why it matters.")
    disqualifies: bool = False
    files: tuple[str, ...] = Field((), description="Files of the environment that are changed.")

    @field_validator("kind")
    @classmethod
    def _is_one_of_ours(cls, kind: FindingKind | str, info: ValidationInfo) -> FindingKind | str:
        """What is read from a file may be of tomorrow; what this version makes may not."""
        if info.mode != "json" and not isinstance(kind, FindingKind):
            raise ValueError(f"{kind!r} is no kind of finding")
        return kind


class HostFacts(Stored):
    """The machine on which a phase ran."""

    system: str
    cpus: int
    memory_bytes: int
    gpus: tuple[str, ...] = ()
    driver: str | None = None
    variables: dict[str, str] = Field(
        default_factory=dict, description="Declared host variables that reach every process."
    )


class Environment(Stored):
    """A frozen environment: what phase 1 left and phase 2 judges."""

    sandbox: str
    digest: str = Field(
        description="Over path, type, size and content of all files; an image's id for one."
    )
    files: int | None = Field(description="How many; not counted in an image.")
    size_bytes: int
    digest_s: float = Field(description="Seconds that digesting took.")
    ended_processes: tuple[str, ...] = Field(
        (), description="What the build had left running, ended by freeze."
    )
    image: str | None = Field(None, description="The frozen image's id, where it is one.")
    image_digest: str | None = Field(None, description="Of its manifest, where it has one.")
    content_digest: str | None = Field(
        None, description="Of an image's layers, which stays when it is moved."
    )
    base_image: str | None = Field(None, description="Name of the image that the build began on.")
    base_image_id: str | None = None
    base_image_digest: str | None = None
    unusable: str | None = Field(
        None, description="Why what the build left could not be kept: there is no image of it."
    )


class BuildResult(Stored):
    """The end of phase 1."""

    schema_version: int = Field(RECORD_SCHEMA, alias="schema")
    reb_version: str
    outcome: Literal["finished", "time_limit", "budget", "void"]
    owner: Owner | None = None
    fault: Fault | None = Field(None, description="How a build by a model ended badly.")
    reason: str = ""
    started: str
    seconds: float
    seconds_in_processes: float = 0.0
    task_digest: str
    given_digest: str = Field("", description="Of what of the task the build can depend on.")
    source_digest: str
    agent: str
    agent_digest: str
    exit_code: int | None = None
    report: Report | None = None
    report_error: str | None = Field(None, description="Why there is no usable report.")
    environment: Environment | None = None
    build_gpus: str = Field("none", description="What was asked for: all, a number or none.")
    shown_gpus: tuple[str, ...] = Field(
        (), description="Name and architecture of each GPU that the build was shown."
    )
    sandbox_options: dict[str, Any] = Field(default_factory=dict)
    network: NetworkUse = Field(NetworkUse(), description="What the build reached.")
    host: HostFacts
    agent_version: str | None = Field(None, description="Of the agent's own program.")
    task_text: int | None = Field(None, description="Version of the text that a model was given.")
    task_given: str | None = Field(None, description="That text.")
    model: ModelUse | None = Field(None, description="What was used of a model.")
    steps: int | None = Field(None, description="Of the agent's transcript.")

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


# --- what verification says ------------------------------------------------------------


class EvidenceResult(Stored):
    """Whether one evidence entry held on what this run made."""

    entry: str = Field(description="The entry, as a sentence.")
    verdict: Verdict
    owner: Owner | None = None
    seen: str = Field("", description="What was there, or what was seen instead.")


class Freshness(Stored):
    """How far a stage was kept apart from the others and from the host."""

    kind: Literal["overlay", "in-place", "container"]
    network: Literal["none", "host", "engine"]
    why: str = ""
    #: Files of the frozen state that earlier in-place stages changed.
    changed: tuple[str, ...] = ()


class AssetUse(Stored):
    """Which content of an asset a stage had."""

    origin: Literal["real", "stand-in", "made"] = Field(
        description="The original, what stands in for it, or what has no original."
    )
    digest: str = Field(description="Of its files; empty where it could not be had.")
    changed: str = Field("", description="What was wrong with it when the stage had ended.")


class LevelResult(Stored):
    """The verdict of one level, with all that is needed to read and to repeat it."""

    level: Level
    verdict: Verdict
    owner: Owner | None = Field(None, description="Whose fault a verdict short of passed is.")
    want: Want | None = Field(None, description="What the host lacks, where it is the host's.")
    reason: str = Field("", description="One sentence: why this verdict.")
    advice: str = Field("", description="What a person can do about it.")
    seconds: float = 0.0
    seconds_in_processes: float = 0.0
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    leftover_processes: tuple[str, ...] = ()
    log: str | None = Field(None, description="Path of the log, relative to the attempt.")
    log_bytes_dropped: int = 0
    evidence: tuple[EvidenceResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    fresh: Freshness | None = None
    system_packages: tuple[str, ...] = ()
    proven: Literal["proven", "unproven", "not_solvable", "not_distributed"] | None = None
    flaky: bool = Field(False, description="Repeats gave different verdicts.")
    verdicts: tuple[Verdict, ...] = Field((), description="Of each repeat, where repeated.")
    stage_env: dict[str, str] = Field(default_factory=dict)
    assets: dict[str, AssetUse] = Field(
        default_factory=dict, description="What the stage read, by the task's name of it."
    )
    gpu_use: GpuUse | None = Field(None, description="What was seen on GPUs: C3 and C4.")
    gpu_grades: dict[str, str] = Field(
        default_factory=dict, description="How well it is known that each GPU computed, by UUID."
    )
    canaries: tuple[Canary, ...] = Field((), description="Run where an entry point failed.")
    details: dict[str, Any] = Field(default_factory=dict, description="Of C0 and C2.")


class StoredResult(Stored):
    """A level's result on disk, with what it is valid for."""

    schema_version: int = Field(RECORD_SCHEMA, alias="schema")
    reb_version: str
    environment_digest: str
    task_digest: str
    result: LevelResult

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class ClaimResult(Stored):
    """One claim against what verification found."""

    claim: str
    kind: Literal["path", "version", "capability"]
    value: Any = None
    found: Any = None
    outcome: Literal["true", "false", "withheld", "unverifiable"]
    direction: Literal["over", "under", "repository"] | None = None
    why: str = ""


class Audit(Stored):
    """C5 in full: every claim, and the counts that the table shows."""

    claims: tuple[ClaimResult, ...] = ()
    made: int = 0
    true: int = 0
    false: int = 0
    over: int = 0
    under: int = 0
    withheld: int = 0
    unverifiable: int = 0
    by_kind: dict[str, int] = Field(default_factory=dict, description="Over-claims by kind.")
    precision: float | None = Field(None, description="true / (true + false); null if none.")


class Sizes(Stored):
    """Disk that the environment takes, each file once."""

    prefix_bytes: int | None = None
    build_bytes: int | None = None


class Record(Stored):
    """Everything about one attempt that a table, or a second judgement, needs."""

    schema_version: int = Field(RECORD_SCHEMA, alias="schema")
    reb_version: str
    task: str
    suite: str = ""
    attempt: int = 1
    domain: str = ""
    task_digest: str
    source_digest: str
    agent: str
    sandbox: str
    status: AttemptStatus
    started: str
    finished: str
    build: BuildResult | None = None
    environment: Environment | None = Field(
        None, description="The image that was judged, where it was not built by this attempt."
    )
    python: str | None = Field(None, description="The interpreter that was judged.")
    python_version: str | None = None
    results: dict[Level, LevelResult]
    audit: Audit = Audit()
    findings: tuple[Finding, ...] = ()
    untracked: tuple[str, ...] = Field(
        (), description="Files of the work tree that the source does not have; at most 200."
    )
    sizes: Sizes = Sizes()
    host: HostFacts
    stale: bool = Field(False, description="Some results were made by an older version.")
    stage_variables: dict[str, str] = Field(default_factory=dict)

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    @property
    def builder(self) -> str:
        """Who built: the agent, with its model where it has one."""
        use = self.build.model if self.build else None
        return builder(self.agent, use.model if use else "")

    @property
    def research_ready(self) -> bool:
        """Every applicable level passed, and the attempt counts."""
        applicable = [
            result.verdict
            for result in self.results.values()
            if result.verdict is not Verdict.NOT_APPLICABLE
        ]
        return (
            self.status is AttemptStatus.OK
            and bool(applicable)
            and all(verdict is Verdict.PASSED for verdict in applicable)
        )


class Event(Stored):
    """One line of an attempt's progress, for whoever watches it."""

    time: str
    doing: str
    log: str | None = None


class EventLog:
    """Appends events to a file; a reader may look at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, doing: str, *, log: Path | None = None) -> None:
        """Note what the attempt is doing now, and in which log it can be followed."""
        event = Event(time=now(), doing=doing, log=str(log) if log else None)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(event.model_dump_json() + "\n")
