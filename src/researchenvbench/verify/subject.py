"""What is judged: a frozen environment, the source it belongs to, and the way into it.

An attempt of a run and a user's own folder become the same `Subject`; every level works on
it and knows nothing of where it came from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..sandbox import NO_ASSETS
from .assets import OFFLINE, lead_to_caches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ..assets import Choice, Missing, Ready
    from ..attempt import Report
    from ..gpu.inventory import Gpu
    from ..sandbox import HostEnvironment, StageBox
    from ..source import Snapshot
    from ..task import Task
    from .interpreter import Interpreter


class OpenBox(Protocol):
    """Opens a box that starts from the frozen state and is thrown away when it closes."""

    def __call__(
        self,
        *,
        network: bool = False,
        gpus: Sequence[str] = (),
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> AbstractContextManager[StageBox]:
        """The box, as a context."""
        ...


@dataclass(frozen=True)
class Subject:
    """Everything that the levels need to know about what they judge."""

    folder: Path  #: where results and logs are kept, outside of the frozen state
    open_box: OpenBox
    host: HostEnvironment
    snapshot: Snapshot  #: the source as it should be
    task: Task | None = None
    report: Report | None = None
    report_error: str | None = None  #: why there is no usable report, where one is due
    report_due: bool = True  #: false where nobody was asked for one
    interpreter: Interpreter | None = None
    interpreter_error: str = ""  #: why there is no usable interpreter
    built_ns: int = 0  #: when the build started, in nanoseconds since 1970; 0: nobody built
    #: Files of the environment that are not what its installers listed.
    changed: frozenset[str] = frozenset()
    #: What the task's stages read, as far as it was asked for: there, or why not.
    assets: Mapping[str, Ready | Missing] = field(default_factory=dict)
    asset_choice: Choice = "auto"  #: which of them were asked for
    judge_edits: bool = True  #: false: edits to tracked files are listed and not judged
    say: Callable[[str], None] = field(default=lambda _: None)

    @property
    def logs(self) -> Path:
        """Folder of the logs, made when it is first asked for."""
        folder = self.folder / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def stage_environment(
    subject: Subject,
    box: StageBox,
    *,
    network: bool,
    task: Mapping[str, str],
    gpus: Sequence[Gpu],
) -> dict[str, str]:
    """The variables of a stage's processes, in the order that the protocol gives.

    The box's own variables; the prefix; the report's `env` table, whose PATH comes after that
    of the prefix and of the box; without a network, that
    there is none; where assets lie in a library's cache, that all look there; the task's;
    the declared host variables. Last what nothing overrides: a place for byte code, and the
    GPUs, so that no more of them are shown than the level does.
    """
    environment = box.variables(subject.host, installs=network)
    of_box = dict(environment)
    interpreter = subject.interpreter
    if interpreter is not None:
        binaries = Path(interpreter.executable).parent
        environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"
        if interpreter.kind == "venv":
            environment["VIRTUAL_ENV"] = interpreter.prefix
        elif interpreter.kind == "conda":
            environment["CONDA_PREFIX"] = interpreter.prefix
            environment["CONDA_DEFAULT_ENV"] = Path(interpreter.prefix).name
            environment.update(interpreter.activation)
    if subject.report is not None:
        found_by = environment["PATH"]
        environment.update(subject.report.env)
        # Last, what the report adds: a shell's block and a console script find their programs in
        # the prefix and in the image, as the judge does.
        added = subject.report.env.get("PATH")
        environment["PATH"] = f"{found_by}{os.pathsep}{added}" if added else found_by
    if not network:
        environment.update(OFFLINE)
    lead_to_caches(environment, of_box, task)
    environment.update(task)
    environment.update(subject.host.variables)
    # Byte code beside the sources is not read: nobody lists it, and it can be of other code.
    environment["PYTHONPYCACHEPREFIX"] = str(box.layout.cache / "byte-code")
    # An empty value hides every GPU; indices, since launchers parse integers.
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(box.gpu_indices(gpus))
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return environment
