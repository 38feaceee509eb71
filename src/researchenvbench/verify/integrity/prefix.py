"""The integrity of the environment: its interpreter, its start-up hooks, its frameworks.

The facts are gathered in the box by the harness's own Python (`standalone.look.prefix`), since the
judged interpreter could lie about itself. What a work tree has in it is `worktree`'s subject.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...attempt import Finding
from ...errors import SandboxError
from . import frameworks
from .hooks import judge_hooks
from .launch import why_no_interpreter, wrapper_findings
from .templates import NOTHING_TRACKED, Tracked
from .variables import user_bases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sandbox import StageBox
    from ..interpreter import Interpreter
    from ..subject import Subject


def environment_findings(subject: Subject, box: StageBox, python: str) -> tuple[Finding, ...]:
    """What a reader must know of the environment whose interpreter is `python`.

    Raises:
        SandboxError: the box cannot be looked at.
    """
    nothing: tuple[Finding, ...] = ()
    if subject.interpreter is None:
        why = "stages have no interpreter, and the tools of this host do not stand in for it"
        what = subject.interpreter_error
        nothing = (Finding(kind="no-interpreter", what=what, where=python, why=why),)
        if not python.startswith("/") or "\0" in python:
            return nothing
    variables = dict(subject.interpreter.activation) if subject.interpreter else {}
    variables.update(subject.report.env if subject.report else {})
    facts = look_at_prefix(box, python, subject.interpreter, user_bases=user_bases(variables))
    tracked = Tracked(str(box.layout.repo), frozenset(subject.snapshot.tracked))
    found = nothing + findings_of(facts, subject.built_ns, str(box.layout.root), tracked)
    interpreter = subject.interpreter
    if not subject.judge_edits and interpreter is not None and interpreter.kind == "system":
        # The host's own Python, which was not made for what is judged: its hooks are listed.
        return tuple(finding.model_copy(update={"disqualifies": False}) for finding in found)
    return found


def prefix_size(subject: Subject, box: StageBox) -> int | None:
    """Bytes of the interpreter's prefix; None where there is none, or it cannot be looked at.

    Nor is there one for the system's own Python where the system is the host's: all of /usr
    would be no environment's size.
    """
    interpreter = subject.interpreter
    if interpreter is None or (interpreter.kind == "system" and box.shares_system):
        return None
    try:
        found: int = box.examine("sizes", {"root": interpreter.prefix})["bytes"]
    except SandboxError:  # no verdict hangs on it
        return None
    return found


def look_at_prefix(
    box: StageBox,
    python: str,
    interpreter: Interpreter | None,
    *,
    named: Sequence[str] | None = None,
    hooks: bool = True,
    user_bases: Sequence[str] = (),
) -> dict[str, Any]:
    """The facts of the environment whose interpreter is `python`.

    Args:
        box: Where it is.
        python: The path that was reported.
        interpreter: What it says of itself, where it answered.
        named: The frameworks that are compared with their RECORD; None: all that are known.
        hooks: Whether start-up hooks are looked for.
        user_bases: More folders that may hold the user's own site-packages (`user_bases`).

    Raises:
        SandboxError: the box cannot be looked at.
    """
    answered = {}
    if interpreter is not None:
        answered = {
            "prefix": interpreter.prefix,
            "base_prefix": interpreter.base_prefix,
            "purelib": interpreter.purelib,
            "platlib": interpreter.platlib,
            "stdlib": interpreter.stdlib,
            "platstdlib": interpreter.platstdlib,
        }
    order = {
        "path": python,
        "folder": str(box.layout.repo),
        "home": str(box.layout.home),
        "user_bases": list(user_bases),
        "answered": answered,
        "hooks": hooks,
        "within": str(box.layout.root),
        "frameworks": frameworks.wanted(named),
    }
    return box.examine("prefix", order)


def findings_of(
    facts: dict[str, Any],
    since_ns: int = 0,
    box_root: str = "/",
    tracked: Tracked = NOTHING_TRACKED,
) -> tuple[Finding, ...]:
    """What a reader must know of an environment.

    Args:
        facts: Those of `look_at_prefix`.
        since_ns: When the build started; 0 where nobody built.
        box_root: The folder of the build. Start-up hooks outside of it that were there before
            the build are the host's own.
        tracked: The repository's modules.
    """
    found = wrapper_findings(facts["steps"])
    if why_no_interpreter(facts["steps"]):
        return tuple(found)  # there is no environment around it
    hooks = [_of_the_build(hook, since_ns, box_root) for hook in facts["hooks"]]
    found += judge_hooks(hooks, tracked)
    problems = [problem.finding for problem in frameworks.problems(facts["frameworks"])]
    found += problems
    told = {problem.where for problem in problems}  # of a framework that has been named
    found += [_changed(one) for one in facts["distributions"] if one["folder"] not in told]
    found += [
        _changed_library(one)
        for one in facts.get("library", ())
        if one["changed_ns"] >= since_ns or _is_within(one["folder"], box_root)
    ]
    return tuple(found)


def _changed_library(facts: dict[str, Any]) -> Finding:
    more = f" and {facts['count'] - 1} more" if facts["count"] > 1 else ""
    return Finding(
        kind="distribution-changed",
        what=f"the standard library is not what was installed: {facts['files'][0]}{more}",
        where=facts["folder"],
        files=tuple(facts["files"]),
        why="probes and the code that is judged import it",
    )


def _changed(facts: dict[str, Any]) -> Finding:
    name, _, version = facts["folder"].rpartition("/")[2].removesuffix(".dist-info").partition("-")
    more = f" and {facts['count'] - 1} more" if facts["count"] > 1 else ""
    return Finding(
        kind="distribution-changed",
        what=f"{name} {version} is not what its installer listed: {facts['files'][0]}{more}",
        where=facts["folder"],
        files=tuple(_full(facts["folder"], file) for file in facts["files"]),
        why="the code that runs is not the distribution's, but what somebody made of it",
    )


def _full(folder: str, listed: str) -> str:
    """A RECORD's path, which is relative to the folder that holds the distribution's."""
    return os.path.normpath(f"{folder.rpartition('/')[0]}/{listed}")


def _of_the_build(hook: dict[str, Any], since_ns: int, box_root: str) -> dict[str, Any]:
    """The hook, with those of its files marked that the build cannot have made."""
    files = [
        {
            **file,
            "of_host": file["changed_ns"] < since_ns and not _is_within(file["path"], box_root),
        }
        for file in hook["files"]
    ]
    return {**hook, "files": files}


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
