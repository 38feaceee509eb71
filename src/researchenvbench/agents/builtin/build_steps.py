"""The built-in agent's steps, in order. Each says what it decided and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from . import framework as frameworks
from . import interpreter, names, plan
from .install import install
from .look import Facts, look
from .repair import Remaining, Repair

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from packaging.specifiers import SpecifierSet

    from .. import Assignment
    from .framework import Framework
    from .interpreter import Python
    from .request import Request
    from .workbench import Workbench


_SCRIPTS_LOOKED_AT = 12
_SECOND_TRY_S = 300  #: what must be left of the time for another environment


def build(bench: Workbench, assignment: Assignment, date: datetime | None) -> str:
    """Make the environment; empty when all that is needed imports, else what is missing."""
    facts = look(bench, assignment)
    if facts is None:
        return "no Python was found in the box to look at the repository with"
    needed = frameworks.needed(facts.manifests, facts.tree.third_party())
    for name, why in needed.items():
        bench.decide(f"framework {name}: {why}")
    python = choose_python(bench, assignment, facts, needed, date)
    if python is None:
        return "no Python of this host can make an environment"
    if date is not None and not interpreter.is_older(python, date):
        bench.decide(
            f"the index is read as of today: Python {python.minor} is younger than the source "
            f"({date:%Y-%m-%d}), so that nothing of that day has wheels for it"
        )
        date = None
    missing = fill(bench, facts, needed, python, date)
    if missing and date is not None and bench.left_s() > _SECOND_TRY_S:
        bench.decide(f"as of {date:%Y-%m-%d} not all works ({missing}): once more, as of today")
        missing = fill(bench, facts, needed, python, None)
    return missing


def fill(
    bench: Workbench,
    facts: Facts,
    needed: Mapping[str, str],
    python: Python,
    date: datetime | None,
) -> str:
    """Make an environment and fill it; what is missing in the end, empty when nothing is."""
    if not make_environment(bench, python):
        return f"no environment can be made with {python.path}"
    torch = None
    if "torch" in needed:
        torch = frameworks.install_torch(
            bench, python, facts.host, torch_bound(bench, facts, python)
        )
        if torch is None:
            return "no torch could be installed"
    hide_compiler_of_cuda(bench, facts, torch)
    request = prepare_request(bench, facts, needed, torch, date)
    if not install(bench, request):
        bench.decide("not everything that is declared could be installed; going on with imports")
        if request.source is not None:
            install_alone(bench, request)
    return conclude(bench, repair(bench, facts, request, torch))


# --- choose ----------------------------------------------------------------------------


def choose_python(
    bench: Workbench,
    assignment: Assignment,
    facts: Facts,
    needed: Mapping[str, str],
    date: datetime | None,
) -> Python | None:
    """A Python that the repository allows, that the host has, and that wheels exist for."""
    bound = frameworks.bound_of("torch", facts.manifests)
    pins = [
        str(one.requirement)
        for one in facts.manifests.of("package", "file", "conda")
        if any(spec.operator == "==" for spec in one.requirement.specifier)
        and one.name not in frameworks.FRAMEWORKS
    ]

    def at_hand(python: Python) -> bool:
        return frameworks.at_hand(facts.host.wheels, python, facts.host, bound) is not None

    def wheels_exist(python: Python) -> bool:
        wanted = bench.write("pins.in", "\n".join(pins) + "\n")
        return bench.run(
            [bench.uv, "pip", "compile", "--quiet", "--no-deps", "--only-binary", ":all:",
             "--python-version", python.minor, "--python", python.path, str(wanted)],
            limit_s=60,
        ).ok  # fmt: skip

    return interpreter.choose(
        facts.pythons,
        facts.manifests,
        stated=assignment.python,
        date=date,
        framework_at_hand=at_hand if "torch" in needed else None,
        wheels_exist=wheels_exist if pins else None,
        decide=bench.decide,
    )


def torch_bound(bench: Workbench, facts: Facts, python: Python) -> SpecifierSet:
    """What binds torch's version: what is declared, else what a page tells people to type.

    A page was written for its author's GPU, so without one it binds only where it can be kept
    with a CPU build.
    """
    declared = frameworks.bound_of("torch", facts.manifests)
    told = frameworks.bound_of("torch", facts.manifests, "readme")
    if declared or not told:
        return declared
    kept = facts.host.gpus or frameworks.at_hand(facts.host.wheels, python, facts.host, told)
    if not kept:
        bench.decide(f"the README's torch{told} is not heeded: no CPU build of it is at hand")
    return told if kept else declared


def make_environment(bench: Workbench, python: Python) -> bool:
    """An empty environment at the place where one is expected."""
    made = bench.run(
        [bench.uv, "venv", "--quiet", "--clear", "--python", python.path, str(bench.layout.env)],
        limit_s=120,
    )
    bench.environment = activated(bench)
    return made.ok


def activated(bench: Workbench) -> dict[str, str]:
    """The variables with the environment's own added."""
    prefix = str(bench.layout.env)
    path = bench.environment.get("PATH", "")
    first = f"{prefix}/bin"
    return {
        **bench.environment,
        "VIRTUAL_ENV": prefix,
        "PATH": path if path.startswith(f"{first}:") else f"{first}:{path}",
    }


def hide_compiler_of_cuda(bench: Workbench, facts: Facts, torch: Framework | None) -> None:
    """Keep nvcc from extensions that are built against a CPU build of torch.

    An extension that asks for CUDA because it can call nvcc would fail. The folder of nvcc
    holds other programs too, so that a folder of links to those stands in for it.
    """
    nvcc = facts.programs.get("nvcc")
    hidden = str(bench.folder) in bench.environment["PATH"]
    if torch is None or not torch.cpu or not nvcc or hidden:
        return
    places = []
    for number, folder in enumerate(bench.environment["PATH"].split(":")):
        stand_in = bench.folder / f"path-{number}"
        script = (
            'test -e "$1/nvcc" && mkdir -p "$2" && ln -s "$1"/* "$2"/ && '
            'rm "$2/nvcc" && echo hidden'
        )
        made = bench.run(["sh", "-c", script, "sh", folder, str(stand_in)], limit_s=30)
        places.append(str(stand_in) if made.ok else folder)
    bench.environment["PATH"] = ":".join(places)
    bench.environment.pop("CUDA_HOME", None)
    bench.decide(
        f"{nvcc} hidden from builds: torch {torch.version} is a CPU build, and an extension that "
        "asks for CUDA because it can call nvcc fails against it"
    )


# --- ask -------------------------------------------------------------------------------


def prepare_request(
    bench: Workbench,
    facts: Facts,
    needed: Mapping[str, str],
    torch: Framework | None,
    date: datetime | None,
) -> Request:
    """The request of the first resolution, the repository itself included where it installs."""
    manifests = facts.manifests
    request = plan.first_request(manifests, bench.decide, installs_itself=manifests.installable)
    request.date = date
    if date is not None:
        bench.decide(f"index as of {date:%Y-%m-%d}, the date of the source")
    if torch is not None:
        request.held["torch"] = torch.keep[0]
    if facts.host.gpus and facts.host.cuda is not None:
        _ask_for_gpu_builds(bench, facts, needed, request)
    if not manifests.installable:
        bench.decide("the repository is no installable package: only its requirements are")
        return request
    copy = bench.folder / "source"
    bench.run(["rm", "-rf", str(copy)], limit_s=300)
    copied = bench.run(
        ["cp", "-a", "--reflink=auto", str(bench.layout.repo), str(copy)], limit_s=600
    )
    request.source = copy if copied.ok else bench.layout.repo
    bench.decide("the repository is installed from a copy, so that its own tree stays as it is")
    _decide_isolation(bench, facts, request)
    return request


def _ask_for_gpu_builds(
    bench: Workbench, facts: Facts, needed: Mapping[str, str], request: Request
) -> None:
    assert facts.host.cuda is not None  # noqa: S101 - for the type checker
    major = facts.host.cuda.major
    for name, extra in (("jax", f"jax[cuda{major}]"), ("tensorflow", "tensorflow[and-cuda]")):
        if name in needed:
            bench.decide(f"{extra}: {facts.host.gpus} GPUs, driver for CUDA {facts.host.cuda}")
            request.add(plan.requirement_of(extra), "this host's GPUs")


def _decide_isolation(bench: Workbench, facts: Facts, request: Request) -> None:
    """Whether the repository is built against the environment, and with what in it.

    A build that asks for the framework, or whose script imports what it does not ask for,
    must see the environment; else it would be given another framework, or fail.
    """
    manifests = facts.manifests
    own = {name.removesuffix(".py").split("/")[0] for name in facts.tree.files}
    imported = manifests.setup_imports - own - {"setuptools", "pkg_resources"}
    asked = {one.name for one in manifests.build_requires}
    undeclared = {
        module for module in imported if not any(module in names.modules_of(name) for name in asked)
    }
    framework = asked & frameworks.FRAMEWORKS.keys() or imported & frameworks.FRAMEWORKS.keys()
    if not framework and not undeclared:
        return
    why = (
        f"its build needs {', '.join(sorted(framework))}, which must be the environment's"
        if framework
        else f"its setup script imports {', '.join(sorted(undeclared))} undeclared"
    )
    bench.decide(f"the repository is built without isolation: {why}")
    wanted = [
        str(one.requirement)
        for one in manifests.build_requires
        if one.name not in frameworks.FRAMEWORKS
    ]
    wanted += [
        brings
        for module in undeclared
        if module not in frameworks.FRAMEWORKS
        and (brings := names.known(module) or names.same_name(module))
    ]
    wanted += ["setuptools", "wheel"]
    if manifests.compiles and not facts.programs.get("ninja"):
        wanted.append("ninja")
    bench.run([bench.uv, "pip", "install", "--python", str(bench.python), *wanted], limit_s=900)
    request.without_isolation.add(canonicalize_name(manifests.name))
    bench.environment.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
    if not (facts.programs.get("c++") or facts.programs.get("g++")) and manifests.compiles:
        bench.decide("no C++ compiler is on PATH: the repository's extensions cannot be built")


def install_alone(bench: Workbench, request: Request) -> None:
    """The repository without its requirements, where they cannot be had together."""
    command = [bench.uv, "pip", "install", "--python", str(bench.python), "--no-deps"]
    for name in sorted(request.without_isolation):
        command += ["--no-build-isolation-package", name]
    installed = bench.run([*command, str(request.source)], limit_s=1_800)
    bench.decide(
        "the repository installed without its requirements"
        if installed.ok
        else "the repository itself cannot be installed"
    )


# --- mend, conclude --------------------------------------------------------------------


def repair(bench: Workbench, facts: Facts, request: Request, torch: Framework | None) -> Remaining:
    """Import what the code and the repository's packages import, and mend what fails."""
    wanted = plan.wanted_modules(facts.tree, plan.needed_files(facts.tree, facts.manifests))
    bench.decide(
        f"{len(wanted)} third-party modules are imported: "
        + ", ".join(f"{one.module} ({one.level})" for one in wanted)
    )
    work = Repair(bench, request, facts.manifests, wanted, torch)
    if request.source is not None:
        work.watch(_own_statements(bench, facts))
    return work.run()


def _own_statements(bench: Workbench, facts: Facts) -> dict[str, list[str]]:
    """What must work of the repository itself: its packages, and its console scripts' modules."""
    found = {name: [f"import {name}"] for name in _own_packages(bench, facts)}
    for module in sorted(set(facts.manifests.scripts.values()))[:_SCRIPTS_LOOKED_AT]:
        package = module.split(".")[0]
        if package in found:
            found[package].append(f"import {module}")
    return found


def _own_packages(bench: Workbench, facts: Facts) -> list[str]:
    """The modules that the installed repository brings, or should bring."""
    installed = bench.probe(str(bench.python), "installed") or {}
    name = canonicalize_name(facts.manifests.name)
    brought = installed.get(name, {}).get("modules", [])
    packages = facts.tree.packages()
    return [package for package in packages if package in brought] or brought or packages


def conclude(bench: Workbench, remaining: Remaining) -> str:
    """Say what is missing, last in the log; empty when nothing is that is needed."""
    for library in sorted(remaining.libraries):
        bench.decide(f"system library missing: {library}; a package of the system brings it")
    for module, cause in remaining.wanted.items():
        bench.decide(f"not importable, but only wanted: {module}: {cause.sentence}")
    for module, cause in remaining.needed.items():
        bench.decide(f"missing: {module}: {cause.sentence}")
    if remaining.needed:
        return f"not importable: {', '.join(sorted(remaining.needed))}"
    bench.decide("all imports that the repository needs work")
    return ""
