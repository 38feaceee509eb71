"""Bring a request about: uv first, its messages heeded, pip as a second resolver.

Tries are bounded: every relaxation is applied once, and there are at most `_TRIES`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import names, old_tools
from .messages import Suggestion, suggestions

if TYPE_CHECKING:
    from .request import Request
    from .workbench import Outcome, Workbench

_TRIES = 14
_LIMIT_S = 3_600


def install(
    bench: Workbench, request: Request, *, limit_s: float | None = None, pip_too: bool = True
) -> bool:
    """Install what is asked, relaxing the request where it cannot be had as it is."""
    mended: set[str] = set()
    end = bench.left_s() - limit_s if limit_s is not None else 0.0
    for _ in range(_TRIES):
        outcome = _uv(bench, request, bench.left_s() - end)
        if outcome.ok:
            return True
        if bench.left_s() - end < 1:
            bench.decide("the time set apart for this is used up")
            return False
        found = suggestions(outcome.text)
        if any(one.remedy == "unreachable" for one in found):
            words = next(one.words for one in found if one.remedy == "unreachable")
            bench.decide(f"the package index cannot be reached: {words}")
            return False
        if not any(_apply(bench, request, one, mended) for one in found):
            bench.decide("uv gives no hint that has not been followed")
            return pip_too and _pip(bench, request)
    bench.decide(f"gave up after {_TRIES} resolutions")
    return False


def _uv(bench: Workbench, request: Request, limit_s: float) -> Outcome:
    wanted = bench.write("requirements.in", "\n".join(request.lines()) + "\n")
    command = [
        bench.uv, "pip", "install", "--python", str(bench.python), "--requirements", str(wanted),
    ]  # fmt: skip
    if request.overrides():
        overrides = bench.write("overrides.txt", "\n".join(request.overrides()) + "\n")
        command += ["--overrides", str(overrides)]
    for name in sorted(request.without_isolation):
        command += ["--no-build-isolation-package", name]
    if request.date is not None:
        command += ["--exclude-newer", request.date.strftime("%Y-%m-%dT%H:%M:%SZ")]
    if request.prereleases:
        command += ["--prerelease", "allow"]
    if request.wheelhouse is not None:
        command += ["--find-links", str(request.wheelhouse)]
    return bench.run(command, limit_s=min(limit_s, _LIMIT_S))


def _apply(bench: Workbench, request: Request, one: Suggestion, mended: set[str]) -> bool:
    """Follow one suggestion; whether anything changed."""
    if one.remedy == "no_compiler":
        bench.decide(f"no C++ compiler to build {one.name} with: {one.words}")
        return False
    if one.remedy == "no_isolation":
        return _without_isolation(bench, request, one)
    if one.remedy == "old_tools":
        if one.name and one.name not in mended:
            mended.add(one.name)
            return _build_with_old_tools(bench, request, one)
        return False
    done = request.relax(one)
    if done:
        bench.decide(done)
    return done is not None


def _without_isolation(bench: Workbench, request: Request, one: Suggestion) -> bool:
    """Install what the build missed, and let the build see the environment."""
    brings = names.known(one.needs) or names.same_name(one.needs)
    if not one.name or not brings:
        return False
    done = request.relax(one)
    if done is None:
        return False
    bench.decide(done)
    held = request.held.get(brings, brings)
    bench.run(
        [
            bench.uv, "pip", "install", "--python", str(bench.python),
            "setuptools", "wheel", "ninja", held,
        ],
        limit_s=_LIMIT_S,
    )  # fmt: skip
    return True


def _build_with_old_tools(bench: Workbench, request: Request, one: Suggestion) -> bool:
    """Have one old distribution built by the tools of its day."""
    wanted = f"{one.name}=={one.version}" if one.version else _wish_for(one.name, request)
    bench.decide(
        f"{wanted} is too old for today's build tools ({one.words[:160]}): building it alone "
        "with pip<24.1, setuptools 65 and wheel 0.38"
    )
    if old_tools.build(bench, wanted) is None:
        return False
    request.wheelhouse = old_tools.folder(bench)
    return True


def _wish_for(name: str, request: Request) -> str:
    asked = [str(wish.requirement) for wish in request.wishes if wish.name == name]
    return asked[0] if asked else name


def _pip(bench: Workbench, request: Request) -> bool:
    """The second resolver, which forgives what uv refuses. It runs outside the environment."""
    bench.decide("trying pip, which forgives some things that uv refuses")
    pip = bench.folder / "pip"
    for command in (
        [bench.uv, "venv", "--quiet", "--clear", "--python", str(bench.python), str(pip)],
        [bench.uv, "pip", "install", "--quiet", "--python", str(pip / "bin/python"), old_tools.PIP],
    ):
        if not bench.run(command, limit_s=300).ok:
            return False
    plain = replace(request, hashes=False)
    wanted = bench.write("requirements-pip.txt", "\n".join(plain.lines()) + "\n")
    held = [line for line in request.held.values() if "==" in line]
    constraint = bench.write("constraints-pip.txt", "\n".join(held) + "\n")
    command = [
        str(pip / "bin/python"), "-m", "pip", "--python", str(bench.python), "install",
        "--requirement", str(wanted), "--constraint", str(constraint),
    ]  # fmt: skip
    if request.without_isolation:
        command.append("--no-build-isolation")
    if request.wheelhouse is not None:
        command += ["--find-links", str(request.wheelhouse)]
    return bench.run(command, limit_s=_LIMIT_S).ok


__all__ = ["install"]
