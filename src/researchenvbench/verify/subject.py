"""What is judged: a frozen environment, the source it belongs to, and the way into it.

An attempt of a run and a user's own folder become the same `Subject`; every level works on
it and knows nothing of where it came from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ..attempt import Report
    from ..sandbox import HostEnvironment, Layout, StageBox
    from ..sandbox.gpu import Gpu
    from ..source import Snapshot
    from ..task import Task
    from .interpreter import Interpreter


class OpenBox(Protocol):
    """Opens a box that starts from the frozen state and is thrown away when it closes."""

    def __call__(
        self, *, network: bool = False, gpus: Sequence[str] = ()
    ) -> AbstractContextManager[StageBox]:
        """The box, as a context."""
        ...


@dataclass(frozen=True)
class Subject:
    """Everything that the levels need to know about what they judge."""

    folder: Path  #: where results and logs are kept, outside of the frozen state
    open_box: OpenBox
    base_environment: Callable[[Layout, bool], dict[str, str]]  #: (layout, with a network)
    host: HostEnvironment
    snapshot: Snapshot  #: the source as it should be
    frozen_repo: Path  #: the source as the build left it, on the harness's side
    task: Task | None = None
    report: Report | None = None
    report_error: str | None = None  #: why there is no usable report, where one is due
    report_due: bool = True  #: false where nobody was asked for one
    interpreter: Interpreter | None = None
    interpreter_error: str = ""  #: why there is no usable interpreter
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
    layout: Layout,
    *,
    network: bool,
    task: Mapping[str, str],
    gpus: Sequence[Gpu],
) -> dict[str, str]:
    """The variables of a stage's processes, in the order that the protocol gives.

    The box's own variables; the prefix; the report's `env` table; the task's; the declared
    host variables. Last the GPUs, so that nothing shows more of them than the level does.
    """
    environment = subject.base_environment(layout, network)
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
        environment.update(subject.report.env)
    environment.update(task)
    environment.update(subject.host.variables)
    # An empty value hides every GPU; indices, since launchers parse integers.
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu.index) for gpu in gpus)
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return environment
