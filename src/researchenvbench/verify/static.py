"""C0: can every module that the tracked code imports be resolved in the environment?

A third-party module is *missing* where pyright, bound to the judged interpreter, does not
resolve an import of it, or knows only a stub, and the interpreter's own finders do not find
it either. Two more are missing though pyright resolves them: a folder without any module
(what a removed package leaves behind), and a module that is nowhere but whose name the
checker mistakes for something of the repository, such as a folder of scripts.

Names that are not third party:
- A first-party name that does not resolve (a generated version file, an extension that is
  not built, a relative import) is listed, and decides nothing: running the code shows it.
- A standard-library name that neither pyright nor the interpreter finds is not in *this*
  interpreter's library, and counts as a third-party module that is missing.
A file that our parser cannot read but pyright can is written for a newer Python than the
harness runs on: what pyright does not resolve there counts, as required.

What is imported is `imports`' subject, how pyright is run `checker`'s.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..attempt import Level, LevelResult, Owner, Verdict
from ..errors import HostError
from .checker import Checked, CheckerFailed, run_checker
from .finders import FindersFailed, Found, find_modules
from .imports import Imports, collect, read_folder, stdlib_names, third_party_names
from .outline import clean_copy, linked_modules, outline
from .statements import Statement
from .static_details import MissingModule, StaticDetails, UnparsableFile
from .subject import stage_environment
from .tree import Tree

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..sandbox import StageBox
    from ..sandbox.tools import Checker
    from .subject import Subject

CHECKER_LIMIT_S = 1800.0
_NAMES_IN_A_SENTENCE = 8


@dataclass(frozen=True)
class _Code:
    """The tracked code, and what it imports."""

    imports: Imports
    tree: Tree
    files: frozenset[str]  #: tracked Python files, those that do not parse among them
    scope: frozenset[str]

    def third_party(self, standard: Collection[str]) -> dict[str, set[str]]:
        """Name to the files in which it is neither standard nor the repository's own."""
        return third_party_names(self.imports, self.tree, standard)

    def is_first_party(self, file: str, module: str) -> bool:
        """Whether a full name in `file`, as the checker gives it, means the own code."""
        statements = [s for s in self.imports.files.get(file, ()) if not s.level]
        same = [s for s in statements if s.module == module]
        same = same or [s for s in statements if s.top == module.partition(".")[0]]
        # A file that only the checker could read has no statements here.
        same = same or [Statement(module, (), 0, False, 0)]
        return all(self.tree.is_first_party(file, s) for s in same)


def check_imports(
    subject: Subject, box: StageBox | None, roots: Sequence[str] | None, log: Path
) -> LevelResult:
    """The verdict of C0 for a subject; see `check`."""
    interpreter = subject.interpreter
    result = check(
        box,
        Path(interpreter.executable) if interpreter else None,
        subject.snapshot.tree,
        tuple(subject.snapshot.tracked),
        roots,
        log,
        environment=stage_environment(subject, box, network=False, task={}, gpus=()) if box else {},
        why_no_python=subject.interpreter_error,
    )
    return result.model_copy(update={"log": str(log.relative_to(subject.folder))})


def check(
    box: StageBox | None,
    python: Path | None,
    repo: Path,
    tracked: Sequence[str],
    roots: Sequence[str] | None,
    log: Path,
    *,
    environment: Mapping[str, str],
    checker: Checker | None = None,
    why_no_python: str = "",
    time_limit_s: float = CHECKER_LIMIT_S,
) -> LevelResult:
    """The verdict of C0.

    Args:
        box: where the interpreter is; a layer that is thrown away. None where there is none.
        python: the interpreter's path in it, or None where there is no usable one.
        repo: the pristine source, on the harness's side.
        tracked: the paths of its tracked files.
        roots: the files and folders in which a missing module decides the verdict; None
            for all.
        log: what the checker and the interpreter print is added to it.
        environment: the variables of a stage's processes.
        checker: pyright and node by their paths inside the box; by default the harness's.
        why_no_python: shown where `python` is None.
        time_limit_s: of the checker.

    Raises:
        SourceError: a tracked file cannot be read.
        SandboxError: the box cannot be written to.
    """
    started = time.monotonic()
    log.touch()
    outlines: dict[str, bytes] = {}

    def see(file: str, content: bytes, tree: ast.Module | str) -> None:
        outlines[file] = outline(content, tree)

    imports = collect(read_folder(repo, tracked), also=see)
    scope = frozenset(outlines if roots is None else _below(roots, outlines))
    aliases = linked_modules(repo, tracked)
    code = _Code(imports, Tree([*tracked, *aliases]), frozenset(outlines), scope)
    result = _verdict_without_checking(code, python, why_no_python)
    if result is None:
        assert python is not None and box is not None  # noqa: S101, PT018  # looked at above
        copy = clean_copy(tracked, aliases, outlines)
        run = _Run(box, python, log, environment, checker, time_limit_s)
        result = _judged(code, run, copy, frozenset(aliases))
    return result.model_copy(update={"seconds": time.monotonic() - started, "log": str(log)})


@dataclass(frozen=True)
class _Run:
    """Where and how the programs of C0 run."""

    box: StageBox
    python: Path
    log: Path
    environment: Mapping[str, str]
    checker: Checker | None
    time_limit_s: float

    def find(self, names: Sequence[str], *, parents: bool) -> Found:
        return find_modules(
            self.box, self.python, names, self.log, parents=parents, environment=self.environment
        )


def _verdict_without_checking(
    code: _Code, python: Path | None, why_no_python: str
) -> LevelResult | None:
    if not code.files:
        return LevelResult(
            level=Level.C0,
            verdict=Verdict.NOT_APPLICABLE,
            reason="the repository has no tracked Python file",
            details=_details(code, {}, ()).model_dump(mode="json"),
        )
    if not code.scope:
        return LevelResult(
            level=Level.C0,
            verdict=Verdict.INCONCLUSIVE,
            owner=Owner.TASK,
            reason="the files that the verdict should look at are no tracked Python files",
            advice="correct c0.roots, or the scripts that the task's stages start",
            details=_details(code, {}, ()).model_dump(mode="json"),
        )
    if python is None:
        why = f": {why_no_python}" if why_no_python else ""
        return _all_missing(code, f"there is no usable interpreter{why}")
    return None


def _judged(
    code: _Code, run: _Run, copy: Mapping[str, bytes], aliases: frozenset[str]
) -> LevelResult:
    everything = sorted(code.imports.modules)
    seconds = 0.0
    try:
        first = run.find(everything, parents=False)
        seconds += first.seconds
        checked = run_checker(
            run.box,
            run.checker or run.box.tools.find_checker(),
            run.python,
            copy,
            run.log,
            aliases=aliases,
            environment=run.environment,
            time_limit_s=run.time_limit_s,
        )
        seconds += checked.seconds
        unresolved = {u.module for u in checked.unresolved if not u.module.startswith(".")}
        second = run.find(sorted(unresolved), parents=True)
        seconds += second.seconds
    except CheckerFailed as failure:
        seconds += failure.seconds
        if failure.owner is Owner.AGENT:
            result = _all_missing(code, failure.reason)
            return result.model_copy(update={"seconds_in_processes": seconds})
        return _inconclusive(code, failure.owner, failure.reason, failure.advice, seconds)
    except HostError as error:
        return _inconclusive(code, Owner.HOST, str(error.args[0]), error.advice, seconds)
    except FindersFailed as failure:
        if failure.owner is Owner.AGENT:
            return _all_missing(code, failure.reason)
        return _inconclusive(code, failure.owner, failure.reason, "", seconds + failure.seconds)
    details = _compare(code, checked, first, second)
    result = _verdict(details)
    return result.model_copy(update={"seconds_in_processes": seconds})


def _compare(code: _Code, checked: Checked, first: Found, second: Found) -> StaticDetails:
    """What pyright and the interpreter together say is missing."""
    third_party = code.third_party(first.standard)
    newer = {u.file for u in code.imports.unparsable} - checked.syntax_errors
    missing: dict[str, _Missing] = {}
    importable: set[str] = set()
    own: set[str] = set()
    paper: set[str] = set()
    reported: set[tuple[str, str]] = set()
    for found in checked.unresolved:
        if found.file not in code.imports.files and found.file not in newer:
            continue
        top = found.module.partition(".")[0]
        reported.add((found.file, top))
        if not found.source_only and top:
            paper.add(top)
        if not top or code.is_first_party(found.file, found.module):
            own.add(found.module if top else f"{found.file}: {found.module}")
        elif second.answers.get(found.module) == "module":
            importable.add(found.module)
        else:
            third_party.setdefault(top, set()).add(found.file)
            missing.setdefault(top, _Missing()).add(found.file, found.module)
    for top, files in third_party.items():
        answer = first.answers.get(top)
        for file in files:
            if answer == "hollow":
                why = "the environment has a folder of that name with no module in it"
            elif answer == "missing" and (file, top) not in reported and code.tree.hides(file, top):
                why = "the repository has something of that name that is not the module"
            else:
                continue
            missing.setdefault(top, _Missing()).add(file, top, why)
    details = _details(code, third_party, _missing_modules(code, missing))
    return details.model_copy(
        update={
            "missing_paper": len(paper),
            "missing_paper_names": tuple(sorted(paper)),
            "importable": tuple(sorted(importable)),
            "first_party_missing": tuple(sorted(own)),
            "checker_version": checked.version,
            "checker_s": round(checked.seconds, 3),
            "python_version": first.version,
        }
    )


class _Missing:
    """Where one module is missing."""

    def __init__(self) -> None:
        self.uses: set[tuple[str, str]] = set()
        self.why = ""

    def add(self, file: str, module: str, why: str = "") -> None:
        self.uses.add((file, module))
        self.why = self.why or why


def _missing_modules(code: _Code, missing: Mapping[str, _Missing]) -> tuple[MissingModule, ...]:
    modules = []
    for name, found in sorted(missing.items()):
        required = {file for file, module in found.uses if code.imports.required_in(file, module)}
        modules.append(
            MissingModule(
                name=name,
                required=bool(required),
                decides=not required.isdisjoint(code.scope),
                modules=tuple(sorted({module for _, module in found.uses})),
                files=tuple(sorted({file for file, _ in found.uses})),
                why=found.why,
            )
        )
    return tuple(modules)


def _details(
    code: _Code, third_party: Mapping[str, object], missing: Sequence[MissingModule]
) -> StaticDetails:
    return StaticDetails(
        files=len(code.files),
        unparsable=tuple(
            UnparsableFile(file=bad.file, error=bad.error) for bad in code.imports.unparsable
        ),
        total_paper=code.imports.total_paper,
        third_party=len(third_party),
        missing=tuple(missing),
        scope_files=len(code.scope),
    )


# --- verdicts --------------------------------------------------------------------------


def _verdict(details: StaticDetails, prefix: str = "") -> LevelResult:
    deciding = [module.name for module in details.missing if module.decides]
    others = [module.name for module in details.missing if not module.decides]
    rate = f"{len(details.missing)} of {details.third_party} third-party modules are missing"
    if deciding:
        reason = f"{prefix}required modules are missing: {_listed(deciding)} ({rate})"
    elif others:
        reason = f"{rate}, none of them required in the files that count: {_listed(others)}"
    else:
        reason = f"all {details.third_party} third-party modules are found"
    failed = bool(deciding) or bool(prefix)
    return LevelResult(
        level=Level.C0,
        verdict=Verdict.FAILED if failed else Verdict.PASSED,
        owner=Owner.AGENT if failed else None,
        reason=reason if deciding or not prefix else f"{prefix}{rate}",
        advice="install what provides them into the environment" if deciding else "",
        details=details.model_dump(mode="json"),
    )


def _all_missing(code: _Code, why: str) -> LevelResult:
    """Where the environment lets nobody see what it has, every third-party import is missing."""
    uses = code.third_party(stdlib_names(None))
    missing: dict[str, _Missing] = {}
    for name, files in uses.items():
        for file in files:
            for statement in code.imports.files[file]:
                if statement.top == name and not statement.level:
                    missing.setdefault(name, _Missing()).add(file, statement.module)
    return _verdict(_details(code, uses, _missing_modules(code, missing)), f"{why}; ")


def _inconclusive(
    code: _Code, owner: Owner, reason: str, advice: str, seconds: float
) -> LevelResult:
    return LevelResult(
        level=Level.C0,
        verdict=Verdict.INCONCLUSIVE,
        owner=owner,
        reason=reason,
        advice=advice,
        seconds_in_processes=seconds,
        details=_details(code, code.third_party(stdlib_names(None)), ()).model_dump(mode="json"),
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_IN_A_SENTENCE])
    more = len(names) - _NAMES_IN_A_SENTENCE
    return f"{shown} and {more} more" if more > 0 else shown


def _below(roots: Iterable[str], files: Iterable[str]) -> set[str]:
    names = [root.removeprefix("./").rstrip("/") for root in roots]
    return {
        file
        for file in files
        if any(root in ("", ".") or file == root or file.startswith(f"{root}/") for root in names)
    }
