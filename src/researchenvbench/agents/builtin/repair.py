"""Import what the code imports, read how it fails, ask for what would mend it, and again.

Rounds are bounded, and no remedy is tried twice. What scripts, examples and tests import is
wanted but not needed: it must not cost what is needed, and what cannot be had of it is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from . import plan, releases
from .failures import Cause, cause_of
from .framework import COMPANIONS, Framework, follow_torch
from .install import install

if TYPE_CHECKING:
    from .manifests import Manifests
    from .plan import Wanted
    from .request import Request
    from .workbench import Workbench

_ROUNDS = 8
_IMPORT_LIMIT_S = 180
_WITH_WINDOWS = {"opencv-python", "opencv-contrib-python"}  #: each has a `-headless` build

Addition = tuple[Requirement, str]  #: what is asked for, and why


@dataclass
class Remaining:
    """What does not import when repairing has come to its end."""

    needed: dict[str, Cause] = field(default_factory=dict)
    wanted: dict[str, Cause] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)


@dataclass
class Moved:
    """A change of versions that has yet to show that it helps."""

    modules: set[str]
    what: list[str]
    request: Request
    versions: dict[str, str]


class Repair:
    """Rounds of importing and mending for one environment."""

    def __init__(
        self,
        bench: Workbench,
        request: Request,
        manifests: Manifests,
        wanted: list[Wanted],
        framework: Framework | None,
    ) -> None:
        self._bench = bench
        self._request = request
        self._manifests = manifests
        self._wanted = {one.module: one for one in wanted}
        self._framework = framework
        self._tried: set[str] = set()
        self._own: dict[str, list[str]] = {}
        self._installed: dict[str, dict[str, Any]] = {}
        self._moved: Moved | None = None

    def watch(self, own: dict[str, list[str]]) -> None:
        """Statements of the repository's own that must work too, by package."""
        self._own = own

    def run(self) -> Remaining:
        """Mend until all imports work or nothing new can be tried."""
        self._mend_companions()
        failed = self._check(None)
        for _ in range(_ROUNDS):
            if not failed or self._bench.left_s() < 30:
                break
            before, versions = failed, self._versions()
            self._moved = None
            if not self._mend(failed):
                break
            self._mend_companions()
            failed = self._recheck(before, versions)
            if self._moved is not None and not _fewer(before, failed, self._moved.modules):
                failed = self._undo(self._moved, before)
        return self._remaining(failed)

    def _recheck(
        self, before: dict[str, list[Cause]], versions: dict[str, str]
    ) -> dict[str, list[Cause]]:
        """Look at what failed again, and at everything where something that was there moved."""
        failed = self._check(set(before))
        now = self._versions()
        if any(now.get(name) != version for name, version in versions.items()):
            rest = self._wanted.keys() - before.keys()
            failed |= self._check(set(rest)) if rest else {}
        return failed

    def _undo(self, moved: Moved, before: dict[str, list[Cause]]) -> dict[str, list[Cause]]:
        """Go back to the versions from before a move that helped nothing."""
        self._bench.decide(f"going back: {', '.join(moved.what)} did not help")
        self._request = moved.request
        pins = [
            f"{name}=={version}"
            for name, version in moved.versions.items()
            if self._versions().get(name) != version and name not in moved.request.held
        ]
        if pins:
            self._bench.run(
                [self._bench.uv, "pip", "install", "--python", str(self._bench.python),
                 "--no-deps", *pins],
                limit_s=600,
            )  # fmt: skip
        return self._check(set(before))

    def _versions(self) -> dict[str, str]:
        return {name: str(facts["version"]) for name, facts in self._installed.items()}

    # --- looking -----------------------------------------------------------------------

    def _check(self, only: set[str] | None) -> dict[str, list[Cause]]:
        """The causes of the statements that fail, by module."""
        modules = {
            module: list(one.statements)
            for module, one in self._wanted.items()
            if only is None or module in only
        }
        own = {f"{name} (its own)": statements for name, statements in self._own.items()}
        modules |= own
        answers = self._ask(modules, first=[])
        self._installed = self._bench.probe(str(self._bench.python), "installed") or {}
        failed = _failed(answers)
        if failed.keys() & self._wanted.keys() and self._own and not failed.keys() & own.keys():
            # Some packages prepare others when they are imported (by environment variables,
            # say): what works after the repository's own packages works for its users.
            again = {module: modules[module] for module in failed}
            first = [f"import {name}" for name in self._own]
            failed = _failed(self._ask(again, first=first))
        return failed

    def _ask(self, modules: dict[str, list[str]], first: list[str]) -> dict[str, Any]:
        question = {"modules": modules, "first": first, "limit_s": _IMPORT_LIMIT_S}
        answer = self._bench.ask(str(self._bench.python), "imports", question, limit_s=1_200)
        return answer if isinstance(answer, dict) else {}

    def imports(self, module: str) -> bool:
        """Whether one module imports now."""
        answer = self._ask({module: [f"import {module}"]}, first=[])
        return bool(answer) and all(one["ok"] for one in answer[module])

    def _remaining(self, failed: dict[str, list[Cause]]) -> Remaining:
        left = Remaining()
        for module, causes in failed.items():
            one = self._wanted.get(module)
            where = left.needed if one is None or one.level == "needed" else left.wanted
            where[module] = causes[0]
            left.libraries |= {cause.name for cause in causes if cause.kind == "library"}
        return left

    # --- mending -----------------------------------------------------------------------

    def _mend(self, failed: dict[str, list[Cause]]) -> bool:
        """One round: everything that can be asked for now; whether there was anything."""
        if self._move(failed):
            return True
        needed: list[Addition] = []
        wanted: list[Addition] = []
        for module, causes in failed.items():
            one = self._wanted.get(module)
            for cause in causes:
                found = self._remedy(cause, one.level if one else "needed")
                if found is not None:
                    (needed if one is None or one.level == "needed" else wanted).append(found)
        if needed:
            self._ask_for(needed, needed=True)
        if wanted:
            self._ask_for(wanted, needed=False)
        return bool(needed or wanted)

    def _move(self, failed: dict[str, list[Cause]]) -> bool:
        """Ask for other releases of what has changed under the code; whether there was any.

        This comes before additions, whose versions depend on it.
        """
        moving: dict[str, list[Addition]] = {}
        for module, causes in failed.items():
            for cause in causes:
                if cause.kind in ("name_gone", "attribute"):
                    found = self._for_clash(cause, self._wanted.get(module))
                    if found is not None:
                        moving.setdefault(module, []).append(found)
        if moving:
            additions = [one for found in moving.values() for one in found]
            what = [str(one[0]) for one in additions]
            self._moved = Moved(set(moving), what, self._request.copy(), self._versions())
            self._ask_for(additions, needed=False)
        return bool(moving)

    def _mend_companions(self) -> None:
        """Versions of what belongs to one build of torch that import beside this one."""
        self._installed = self._bench.probe(str(self._bench.python), "installed") or {}
        suspects = {name for name in COMPANIONS if name in self._installed}
        suspects -= self._request.held.keys() | self._request.excluded
        if self._framework is None or not suspects:
            return
        here = {name: self._installed[name] for name in suspects}
        held = follow_torch(self._bench, self._framework, here, self.imports)
        for name, version in held.items():
            if version:
                self._request.held[name] = f"{name}=={version}"
            else:
                self._request.excluded.add(name)

    def _remedy(self, cause: Cause, level: str) -> Addition | None:
        """What to ask for because of one failure, with the reason, if it is new."""
        match cause.kind:
            case "missing":
                return self._for_missing(cause, level)
            case "bound":
                why = f"an import says: {cause.sentence}"
                return self._new(cause.requirement, why)
            case "library":
                return self._without_windows(cause)
        return None

    def _without_windows(self, cause: Cause) -> Addition | None:
        """The build of a distribution that opens no windows, where a desktop's library is missing.

        It has the same modules, so the other build leaves first.
        """
        for name in _WITH_WINDOWS & self._installed.keys():
            if name in self._request.excluded or self._raised_in(cause) not in (name, None):
                continue
            self._request.excluded.add(name)
            self._bench.run(
                [self._bench.uv, "pip", "uninstall", "--python", str(self._bench.python), name],
                limit_s=60,
            )
            return self._new(f"{name}-headless", f"{name} needs {cause.name}, which is missing")
        return None

    def _for_missing(self, cause: Cause, level: str) -> Addition | None:
        module = cause.module.split(".")[0]
        brought_by = self._brings(module)
        if brought_by and (not cause.where or "." in cause.module):
            return None
        found = plan.distribution_for(module, self._manifests)
        if found is None or (level == "lazy" and found[1] == "the name is the same"):
            return None
        who = self._raised_in(cause) or self._importers(module)
        return self._new(found[0], f"{who} imports {module}: {found[1]}")

    def _for_clash(self, cause: Cause, one: Wanted | None) -> Addition | None:
        """A name is gone from a module that is there: a release that had it.

        What a single file imports and nobody declares is not worth moving others for.
        """
        distribution = self._brings(cause.module.split(".")[0])
        declared = {each.name for each in self._manifests.declared}
        if one and one.level != "needed" and len(one.files) < 2 and distribution not in declared:
            return None
        raised = self._raised_in(cause)
        if distribution is None or distribution in self._request.held:
            return None
        key = f"clash {distribution} {cause.module} {cause.name}"
        if key in self._tried:
            return None
        self._tried.add(key)
        version = str(self._installed[distribution]["version"])
        if raised and raised != distribution:
            newest = self._newest([raised]).get(raised)
            if newest and newest != self._installed[raised]["version"]:
                return self._new(f"{raised}>={_floor(newest)}", f"{cause.sentence}, raised in it")
        found = releases.last_with(self._bench, distribution, version, cause.module, cause.name)
        if found is None:
            return None
        return self._new(
            f"{distribution}<={found}",
            f"{cause.sentence}; {found} is the newest before {version} that has it",
        )

    def _new(self, text: str, why: str) -> Addition | None:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            return None
        if text in self._tried or canonicalize_name(requirement.name) in self._request.excluded:
            return None
        self._tried.add(text)
        return requirement, why

    def _brings(self, module: str) -> str | None:
        for name, facts in self._installed.items():
            if module in facts["modules"]:
                return name
        return None

    def _raised_in(self, cause: Cause) -> str | None:
        """The distribution in whose files a failure arose; None for the statement itself."""
        parts = cause.where.split("/site-packages/")
        return self._brings(parts[1].split("/")[0].removesuffix(".py")) if len(parts) > 1 else None

    def _importers(self, module: str) -> str:
        one = self._wanted.get(module)
        if one is None:
            return "the code"
        more = f" and {len(one.files) - 1} more files" if len(one.files) > 1 else ""
        return f"{one.files[0]}{more}"

    # --- asking ------------------------------------------------------------------------

    def _ask_for(self, additions: list[Addition], *, needed: bool) -> None:
        """Install additions together with all that was asked before.

        The newest release line of what nobody bounds is asked for, since a resolver would
        rather go back years in a new distribution than move one that is chosen already.
        """
        names = [canonicalize_name(one.name) for one, _ in additions if not one.specifier]
        newest = self._newest(sorted(set(names) - self._request.held.keys()))
        trial = self._request.copy()
        for requirement, why in additions:
            name = canonicalize_name(requirement.name)
            if name in newest and not requirement.specifier:
                floor = Requirement(f"{requirement}>={_floor(newest[name])}")
                trial.add(floor, why)
                self._bench.decide(f"{floor} added: {why}; {newest[name]} is the newest")
            else:
                trial.add(requirement, why)
                self._bench.decide(f"{requirement} added: {why}")
        limit_s = None if needed else 0.4 * self._bench.left_s()
        if install(self._bench, trial, limit_s=limit_s, pip_too=needed):
            self._request = trial
        elif len(additions) > 1 and not needed:
            self._bench.decide("together they cannot be had: trying each alone")
            for one in additions:
                self._ask_for([one], needed=needed)
        else:
            self._bench.decide(f"going on without {', '.join(str(one) for one, _ in additions)}")

    def _newest(self, names: list[str]) -> dict[str, str]:
        """The newest version of each distribution for this Python, by the index."""
        if not names:
            return {}
        plan_file = self._bench.write("newest.in", "\n".join(names) + "\n")
        outcome = self._bench.run(
            [self._bench.uv, "pip", "compile", "--no-deps", "--no-header", "--no-annotate",
             "--quiet", "--python", str(self._bench.python), str(plan_file)],
            limit_s=120,
        )  # fmt: skip
        if not outcome.ok and len(names) > 1:
            return {key: value for name in names for key, value in self._newest([name]).items()}
        found = (line.strip().split("==") for line in outcome.text.splitlines() if "==" in line)
        return {canonicalize_name(name): version for name, version in found} if outcome.ok else {}


def _floor(version: str) -> str:
    """The release line of a version: its major number, for 0.x the minor too."""
    try:
        release = Version(version).release
    except InvalidVersion:
        return version
    return str(release[0]) if release[0] else ".".join(map(str, release[:2]))


def _fewer(before: dict[str, list[Cause]], after: dict[str, list[Cause]], of: set[str]) -> bool:
    """Whether fewer statements of those modules fail now, and no other module's fail anew."""
    was = sum(len(before.get(module, ())) for module in of)
    now = sum(len(after.get(module, ())) for module in of)
    return now < was and not after.keys() - before.keys()


def _failed(answers: dict[str, Any]) -> dict[str, list[Cause]]:
    return {
        module: causes
        for module, said in answers.items()
        if (causes := [cause_of(one) for one in said if not one["ok"]])
    }
