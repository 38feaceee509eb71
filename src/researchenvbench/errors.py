"""What can go wrong outside of a verdict, each kind with the sentence that a person needs.

A verdict (`passed`, `failed`, …) is a result and never an exception. These exceptions say
that no result could be had: a task file that cannot be read, a source that cannot be
fetched, a sandbox that cannot be opened. Only the command line turns them into exit codes.
"""

from __future__ import annotations

#: How the libraries of agents with a language model come in.
INSTALL_AGENTS = "in reb's checkout: .venv/bin/pip install -e '.[agents]'"


class RebError(Exception):
    """What happened and why, and, in `advice`, what to do about it."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message}\n  {self.advice}" if self.advice else message


class TaskError(RebError):
    """A task or suite cannot be loaded: it is absent, malformed or contradicts itself."""


class SourceError(RebError):
    """The source of a task cannot be had, or is not what its commit or hash promises."""


class SourceNotAvailableError(SourceError):
    """The task itself says that its commit cannot be had any more, and no mirror has it."""


class AssetError(RebError):
    """What a stage reads cannot be had, or is not what the task promises."""


class UnreachableError(AssetError):
    """The server of what a stage reads did not answer, so that nothing is known of it."""

    def __init__(self, message: str, *, host: str, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.host = host


class SandboxError(RebError):
    """The place where a build or a stage should happen cannot be made or entered."""


class RefusedError(SandboxError):
    """What lies in a box is not such as may be read, written or copied there."""


class EnvironmentUnusableError(SandboxError):
    """No stage can start from what was built, though the host and the engine are well."""


class HostError(RebError):
    """This host lacks what the work needs: a program, a right, room on the disk."""


class RecordError(RebError):
    """A run, attempt or record on disk cannot be read."""


class LimitReachedError(RebError):
    """What was built has taken more than it may; that is no fault of the host."""


class SearchError(RebError):
    """Candidates for tasks cannot be searched for: the server refuses, or does not answer."""
