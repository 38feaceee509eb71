"""Which build of torch, jax or tensorflow this host gets, apart from the source's date.

The framework is chosen for the hardware: a CPU build where the build is shown no GPU, else
one for a CUDA that the driver supports. torch alone needs care, since its builds have one
name and the index's own is a CUDA build of several gigabytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging import tags
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .interpreter import Python
    from .manifests import Manifests
    from .tree import Use
    from .workbench import Workbench

FRAMEWORKS = {
    "torch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "flax": "jax",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
}
#: Distributions whose compiled part belongs to one build of torch.
COMPANIONS = ("torchvision", "torchaudio", "torchtext")
_PROBE_LIMIT_S = 30
_DOWNLOAD_LIMIT_S = 1_800


@dataclass(frozen=True)
class Host:
    """What of the host decides about builds."""

    gpus: int = 0
    cuda: Version | None = None  #: the newest that the driver supports
    wheels: tuple[str, ...] = ()  #: file names at hand in find-links


@dataclass
class Framework:
    """The framework as it was installed."""

    version: str
    cpu: bool
    #: Requirements that keep it as it is in every later resolution.
    keep: list[str] = field(default_factory=list)


def needed(manifests: Manifests, uses: Sequence[Use]) -> dict[str, str]:
    """The frameworks that the repository needs, each with the reason."""
    found: dict[str, str] = {}
    for one in manifests.of("package", "file", "conda"):
        framework = FRAMEWORKS.get(one.name)
        if framework or one.name in COMPANIONS:
            found.setdefault(framework or "torch", f"{one.where} names {one.name}")
    for use in uses:
        framework = FRAMEWORKS.get(use.module)
        if framework and use.how == "certain":
            found.setdefault(framework, f"{use.file} imports it")
    return found


def bound_of(name: str, manifests: Manifests, *kinds: str) -> SpecifierSet:
    """What the repository says of the framework's version in declarations of those kinds."""
    bound = SpecifierSet()
    for one in manifests.of(*(kinds or ("package", "file", "conda"))):
        if one.name == name and not one.requirement.url:
            bound &= _public(one.requirement.specifier)
    return bound


def _public(specifier: SpecifierSet) -> SpecifierSet:
    """Without local versions: `==2.1.0+cu118` says 2.1.0 for whatever host."""
    return SpecifierSet(re.sub(r"\+[A-Za-z0-9.]+", "", str(specifier)))


def at_hand(
    wheels: Sequence[str], python: Python, host: Host, bound: SpecifierSet, name: str = "torch"
) -> Version | None:
    """The newest local wheel of the framework for that Python, this host and that bound."""
    supported = set(
        tags.cpython_tags((python.version.major, python.version.minor), platforms=_platforms())
    )
    found = []
    for wheel in wheels:
        try:
            project, version, _, wheel_tags = parse_wheel_filename(wheel)
        except InvalidWheelFilename:
            continue
        if canonicalize_name(project) != name or not wheel_tags & supported:
            continue
        if _fits(version.local or "", host) and bound.contains(version, prereleases=True):
            found.append(version)
    return max(found, default=None)


def _platforms() -> list[str]:
    return list(tags.platform_tags())


def _fits(local: str, host: Host) -> bool:
    """Whether a build with that suffix is one for this host."""
    if host.gpus == 0:
        return local.startswith("cpu")
    cuda = re.match(r"cu(\d+)(\d)$", local)
    if cuda is None or host.cuda is None:
        return False
    return Version(f"{cuda.group(1)}.{cuda.group(2)}") <= host.cuda


def install_torch(
    bench: Workbench, python: Python, host: Host, bound: SpecifierSet
) -> Framework | None:
    """Install the torch that this host should have; None where no way led to one."""
    kind = "CPU" if host.gpus == 0 else f"CUDA (the driver supports {host.cuda})"
    wanted = f"torch{bound}"
    local = at_hand(host.wheels, python, host, bound)
    if local is not None:
        bench.decide(
            f"torch {local}: {'no GPU is shown, so a CPU build' if not host.gpus else kind}; "
            f"the newest in find-links that {bound or 'the repository'} allows"
        )
        if _install(bench, f"torch=={local}", []):
            return _installed(bench, cpu=host.gpus == 0)
    backend = "cpu" if host.gpus == 0 else "auto"
    impatient = {"UV_HTTP_TIMEOUT": "8", "UV_HTTP_RETRIES": "0"}
    probe = ["pip", "install", "--dry-run", "--python", str(bench.python), wanted]
    answer = bench.run(
        [bench.uv, *probe, "--torch-backend", backend], limit_s=_PROBE_LIMIT_S, env=impatient
    )
    if answer.ok:
        bench.decide(f"{wanted} from the framework's own index (--torch-backend={backend})")
        if _install(bench, wanted, ["--torch-backend", backend]):
            return _installed(bench, cpu=host.gpus == 0)
    bench.decide(
        f"the framework's own index cannot be reached or has no {kind} build of {wanted}: "
        "taking the package index's build, which is a CUDA build of several GB"
    )
    for specifier in (_within_cuda(bench, wanted, host), "torch"):
        if _install(bench, specifier, []):
            if specifier == "torch" != wanted:
                bench.decide(f"no build of {wanted} could be installed: took another torch")
            return _installed(bench, cpu=False)
    return None


def _within_cuda(bench: Workbench, wanted: str, host: Host) -> str:
    """The requirement, bounded so that its CUDA is not newer than the driver's."""
    specifier = wanted
    for _ in range(8):
        plan = bench.write("framework.in", specifier + "\n")
        answer = bench.run(
            [bench.uv, "pip", "compile", "--no-header", "--python", str(bench.python), str(plan)],
            limit_s=120,
        )
        cuda = re.search(r"nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)", answer.text)
        version = re.search(r"^torch==(\S+)", answer.text, re.MULTILINE)
        if host.cuda is None or not cuda or not version or int(cuda[1]) <= host.cuda.major:
            break
        comma = "," if re.search(r"[<>=!~]", wanted) else ""
        specifier = f"{wanted}{comma}<{version[1].split('+')[0]}"
        bench.decide(f"torch {version[1]} is for CUDA {cuda[1]}, newer than the driver's")
    return specifier


def _install(bench: Workbench, specifier: str, options: list[str]) -> bool:
    command = [bench.uv, "pip", "install", "--python", str(bench.python), *options, specifier]
    return bench.run(command, limit_s=_DOWNLOAD_LIMIT_S).ok


def _installed(bench: Workbench, *, cpu: bool) -> Framework | None:
    listed = bench.probe(str(bench.python), "installed")
    if not isinstance(listed, dict) or "torch" not in listed:
        return None
    version = str(listed["torch"]["version"])
    return Framework(version, cpu or version.endswith("+cpu"), [f"torch=={version}"])


def follow_torch(
    bench: Workbench,
    framework: Framework,
    installed: dict[str, dict[str, object]],
    imports: Callable[[str], bool],
) -> dict[str, str]:
    """Mend companions that fail to import beside a CPU build: versions to hold, by name.

    The package index's companions are CUDA builds. Since torchvision 0.17 their modules
    register kernels for operators that only the compiled library defines, so without CUDA
    the import fails; an older one still imports, its compiled operators missing. It is taken
    only when an import of it in this environment proves that it works.
    """
    held: dict[str, str] = {}
    for name in COMPANIONS:
        if name not in installed or not framework.cpu:
            continue
        version = Version(str(installed[name]["version"]))
        if version.local == "cpu" or imports(name):
            continue
        bench.decide(f"{name} {version} is no CPU build and does not import beside torch's")
        bounds = ["<0.17"] if name == "torchvision" else []
        bounds += [f"<{version.major}.{minor}" for minor in range(version.minor, 0, -1)][:6]
        for bound in bounds:
            if _install(bench, f"{name}{bound}", ["--no-deps"]) and imports(name):
                now = bench.probe(str(bench.python), "installed") or {}
                held[name] = str(now[name]["version"])
                bench.decide(
                    f"{name} {held[name]} in its place (--no-deps): it imports, but its "
                    "compiled operators (such as nms) are missing"
                )
                break
        else:
            bench.run(
                [bench.uv, "pip", "uninstall", "--python", str(bench.python), name], limit_s=60
            )
            held[name] = ""
            bench.decide(f"{name} left out: no version of it imports beside {framework.version}")
    return held
