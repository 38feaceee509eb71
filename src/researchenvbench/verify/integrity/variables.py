"""Variables that change what is loaded or started, and what they lead to.

The report's `env` table and a conda prefix may set variables for the stages. Those by which
processes load other code are findings. They disqualify where they reach what is not judged:
a library that is put into every process, what a known start-up hook takes code from, modules
on PYTHONPATH that come before the standard library, which the probes use, and plug-ins,
configuration or functions by which libraries and shells start what nobody looks at.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING, Any

from ...attempt import Finding
from .hooks import judge_hooks, triggers
from .shadows import HOOKS, STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...attempt import Report
    from ...sandbox import StageBox
    from ..subject import Subject

#: Variables by which a process loads or starts other code than it would by itself: ld.so(8),
#: the interpreter's own (`python --help-env`), and what shells read as they start.
_START_VARIABLES = re.compile(
    r"LD_\w+|ENV|PROMPT_COMMAND|HOME"
    # which Python a shim of pyenv starts: not the judged one, which no shim stands before
    r"|PYENV_(VERSION|DIR|FILE_ARG|HOOK_PATH)"
    r"|PYTHON(PATH|STARTUP|INSPECT|USERBASE|NOUSERSITE|BREAKPOINT|WARNINGS"
    r"|CASEOK|OPTIMIZE|EXECUTABLE|CODECS|_FROZEN_MODULES)"
)
#: Those by which the interpreter takes its own library, or code that nobody looked at, from
#: elsewhere. PYTHONSAFEPATH takes an installed copy in place of the modules beside a script.
_ELSEWHERE = re.compile(
    r"PYTHON(HOME|PLATLIBDIR|PYCACHEPREFIX|_PRESITE|SAFEPATH)"
    # what a shell executes before, or in place of, what it is told to
    r"|BASH_(FUNC_.*|ENV)|SHELLOPTS|BASHOPTS|PS4"
    # modules and catalogues of the C library, gconv(8), locale(7); whom names of hosts lead to
    r"|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|RESOLV_\w+"
    # libraries that OpenSSL, CUDA, NCCL, frameworks and OpenMP load for the asking
    r"|OPENSSL_(CONF|MODULES|ENGINES)|(CUDA|NVTX)_INJECTION(32|64)_PATH"
    r"|NCCL_\w*PLUGIN|NCCL_CONF_FILE|TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
    r"|PJRT_NAMES_AND_LIBRARY_PATHS|TPU_LIBRARY_PATH|HDF5_PLUGIN_PATH|OMP_TOOL_LIBRARIES"
    # code of other languages' interpreters
    r"|PERL5(OPT|LIB|DB)|NODE_OPTIONS",
    re.DOTALL,
)
#: What says that no plug-in is wanted, which is often right on one host.
_NO_PLUGIN = re.compile(r"NCCL_\w*PLUGIN=(none|)")
#: Where conda's packages have the plug-ins that their activation names.
_CONDA_PLUGINS = "lib/hdf5/plugin"
#: Libraries that are preloaded for good reasons: allocators, OpenMP, compilers' own.
_PRELOADED = re.compile(
    r"lib(jemalloc|tcmalloc\w*|mimalloc\w*|gomp|iomp5|omp|stdc\+\+|gcc_s)([-.][\w.-]*)?\.so[\d.]*"
)


def start_variables(report: Report | None) -> tuple[Finding, ...]:
    """Variables of the report's `env` table that change what is loaded or started."""
    if report is None:
        return ()
    return _judged(report.env, "the report", "report.json: env")


def _judged(variables: Mapping[str, str], who: str, where: str) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            kind="loader-variable",
            what=f"{who} sets {name}={value[:200]}",
            where=where,
            why="it changes which code the stage's processes load",
            disqualifies=_enters_all(name, value),
        )
        for name, value in sorted(variables.items())
        if _changes_what_is_loaded(name, value)
    )


def _changes_what_is_loaded(name: str, value: str) -> bool:
    known = _START_VARIABLES.fullmatch(name) or _ELSEWHERE.fullmatch(name) or name in triggers()
    return bool(known) and not _NO_PLUGIN.fullmatch(f"{name}={value}")


def user_bases(variables: Mapping[str, str]) -> list[str]:
    """Folders in which these variables say that the user's own site-packages are."""
    found = []
    if "HOME" in variables:  # an empty one is that of the root
        found.append(f"{variables['HOME']}/.local")
    if variables.get("PYTHONUSERBASE"):
        found.append(variables["PYTHONUSERBASE"])
    return [folder for folder in found if folder.startswith("/") and "\0" not in folder]


def _enters_all(name: str, value: str) -> bool:
    """Whether a library, or a Python, of the agent's gets into every process of a stage."""
    if _ELSEWHERE.fullmatch(name) or name in triggers():
        return True
    if name in ("HOME", "PYTHONUSERBASE"):
        # Another folder for each one that a process is started in: it cannot be looked at.
        return bool(value) and not value.startswith("/")
    if name not in ("LD_PRELOAD", "LD_AUDIT"):
        return False
    libraries = [posixpath.basename(path) for path in re.split(r"[\s:]+", value) if path]
    return any(name == "LD_AUDIT" or not _PRELOADED.fullmatch(library) for library in libraries)


def search_path(subject: Subject, box: StageBox) -> tuple[Finding, ...]:
    """Modules that PYTHONPATH puts before those of the standard library.

    With them, what a prefix's own activation sets, which is judged as the report's variables are.
    A tracked file is the source's own, and none of them.

    Raises:
        SandboxError: the box cannot be looked at.
    """
    activation: Mapping[str, str] = {}
    found: tuple[Finding, ...] = ()
    if subject.interpreter is not None and subject.interpreter.activation:
        activation = subject.interpreter.activation
        prefix = subject.interpreter.prefix
        scripts = f"{prefix}/etc/conda/activate.d"
        activation = {
            name: value
            for name, value in activation.items()
            if (name, value) != ("HDF5_PLUGIN_PATH", f"{prefix}/{_CONDA_PLUGINS}")
        }
        found = _judged(activation, "an activation script of the prefix", scripts)
    set_by = [activation, subject.report.env if subject.report else {}]
    folders = [folder for variables in set_by for folder in _folders(variables, subject, box)]
    if not folders:
        return found
    names = HOOKS | STANDARD | {name for variables in set_by for name in _categories(variables)}
    order = {"folders": list(dict.fromkeys(folders)), "names": sorted(names)}
    if subject.interpreter is not None:
        order["sites"] = sorted({subject.interpreter.purelib, subject.interpreter.platlib})
    facts = box.examine("modules", order)
    found += tuple(
        Finding(
            kind="loader-variable",
            what="a folder on PYTHONPATH leads through /proc, to another one at another time",
            where=folder,
            why="what is looked at is not what is imported",
            disqualifies=True,
        )
        for folder in facts["volatile"]
    )
    found += tuple(
        Finding(
            kind="loader-variable",
            what="a folder on PYTHONPATH with more names than are looked at",
            where=folder,
            why="one of them may be that of a start-up hook",
            disqualifies=True,
        )
        for folder in facts["crowded"]
    )
    modules = {
        one["real"]: one
        for one in facts["found"]
        if not _is_tracked(one["real"], subject, box) and not _is_of_a_tool(one)
    }
    return found + tuple(
        _before_the_library(_plain(one), started="started" in one) for one in modules.values()
    )


def _is_of_a_tool(found: Mapping[str, Any]) -> bool:
    """Whether what a start-up hook imports is as a known tool makes it, wherever it lies."""
    file = found.get("started")
    if file is None:
        return False
    facts = {**file, "listed": None, "changed_ns": 0}
    hook = {"kind": "sitecustomize", "path": found["path"], "code": [], "files": [facts]}
    return not judge_hooks([{**hook, "runs": True}])


def _folders(variables: Mapping[str, str], subject: Subject, box: StageBox) -> Iterator[str]:
    """Places of PYTHONPATH, those that are relative below each folder that processes start in."""
    repo = str(box.layout.repo)
    starts = [str(box.layout.work), repo]
    for stage in subject.task.stages.values() if subject.task else ():
        starts.append(posixpath.join(repo, stage.folder.replace("{repo}", repo)))
    for part in variables.get("PYTHONPATH", "").split(os.pathsep):
        if part.startswith("/") and "\0" not in part:
            yield part
        elif part and "\0" not in part:
            yield from (f"{start}/{part}" for start in starts if "{" not in start)


def _categories(variables: Mapping[str, str]) -> Iterator[str]:
    """Modules that the interpreter imports for a category of warnings, before anything else."""
    for entry in variables.get("PYTHONWARNINGS", "").split(","):
        module, dot, _ = [*entry.split(":"), "", ""][2].strip().partition(".")
        if dot and module:
            yield module


def _is_tracked(path: str, subject: Subject, box: StageBox) -> bool:
    repo = f"{box.layout.repo}/"
    inside = path.removeprefix(repo)
    tracked = subject.snapshot.tracked
    return path.startswith(repo) and (inside in tracked or f"{inside}/__init__.py" in tracked)


def _plain(found: Mapping[str, str]) -> str:
    """The path as it was reached, unless that is by way of a folder's parents."""
    return found["real"] if "/../" in found["path"] else found["path"]


def _before_the_library(path: str, *, started: bool) -> Finding:
    stem = path.removesuffix(posixpath.splitext(path)[1]).removesuffix("/__init__")
    name = posixpath.basename(stem).partition(".")[0]
    hook = started or name in HOOKS
    return Finding(
        kind="start-up-hook" if hook else "shadowing-module",
        what=f"a module named {name}, on PYTHONPATH",
        where=path,
        why="every start of the interpreter executes it"
        if hook
        else "it is imported in place of the standard library's, also by probes",
        disqualifies=True,
    )
