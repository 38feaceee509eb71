"""Before a stage runs, its work tree gets back what the source has and others may have altered.

Files that the task names as `generated` are written anew, and byte code beside tracked modules
is removed, since Python would run it unread. Both happen in the stage's box only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import RebError, SandboxError
from .worktree import is_generated

if TYPE_CHECKING:
    from ...sandbox import StageBox
    from ..subject import Subject


class RestoreError(RebError):
    """Something in the work tree is in the way of a file of the source."""


def restore(subject: Subject, box: StageBox) -> None:
    """Bring the work tree of `box` to what stages start from.

    Raises:
        RestoreError: a link, a folder or a missing right is in the way.
        SandboxError: the box cannot be looked at.
    """
    snapshot, repo = subject.snapshot, box.layout.repo
    generated = subject.task.generated if subject.task else ()
    for path, entry in snapshot.tracked.items():
        # A link of the source would be read on this host; one that was changed is no product
        # of an installer, and disqualifies.
        if entry.kind == "link" or not is_generated(path, generated):
            continue
        mode = 0o755 if entry.kind == "executable" else 0o644
        try:
            box.put(repo / path, (snapshot.tree / path).read_bytes(), mode=mode)
        except SandboxError as error:
            raise RestoreError(
                f"the generated file {path} cannot be restored: {error.args[0]}",
                advice="the build must leave a regular file there, or nothing",
            ) from error
    if not subject.judge_edits:
        return
    modules = [path for path in snapshot.tracked if path.endswith(".py")]
    trouble = box.examine("bytecode", {"repo": str(repo), "files": modules})["trouble"]
    if trouble:
        raise RestoreError(
            f"the byte code of tracked modules cannot be removed: {trouble}",
            advice="the build must leave it so that its owner can remove it",
        )
