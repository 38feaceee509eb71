"""A plain base image made with debootstrap, where no image registry is reachable.

Debian's own Python, compilers, git and uv, and no framework. What is made here comes from
one mirror of Debian, whose signatures debootstrap checks, and from the harness's own uv.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ...errors import HostError, SandboxError
from .base import REPOSITORY, Image, find_image, image_of, labels, recipe_digest, require_room
from .mirror import find_mirror
from .scratch import alone, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engines.engine import Engine

#: What agents meet, besides Debian's minimal system.
PACKAGES = (
    "build-essential",
    "ca-certificates",
    "curl",
    "git",
    "pkg-config",
    "procps",
    "python-is-python3",
    "python3",
    "python3-dev",
    "python3-pip",
    "python3-venv",
    "unzip",
    "xz-utils",
)
_RECIPE_VERSION = 1
_ROOM_BYTES = 4_000_000_000
_TIME_LIMIT_S = 3600.0
#: Between two lines of progress.
_QUIET_S = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Left behind by the installation, of no use in an image, or facts of this host.
_LEFTOVERS = (
    "var/lib/apt/lists/*",
    "var/cache/apt/*.bin",
    "var/cache/apt/archives/*.deb",
    "var/log/*.log",
    "var/log/apt/*",
    "etc/hostname",
    "etc/resolv.conf",
)
#: Installing a service in a container must not start it (invoke-rc.d(8)).
_NO_SERVICES = "#!/bin/sh\nexit 101\n"


@dataclass(frozen=True)
class DebianRecipe:
    """What decides the content of the image, but for the state of the mirror."""

    suite: str
    uv: str  #: version
    micromamba: str | None  #: version; None: this host has none to copy
    architecture: str
    packages: tuple[str, ...] = PACKAGES
    version: int = _RECIPE_VERSION

    @property
    def digest(self) -> str:
        """Kept as a label, so that the same is not made twice."""
        return recipe_digest(asdict(self))


@dataclass(frozen=True)
class _Programs:
    """Programs of this host that are copied into the image; they are linked statically."""

    uv: str
    micromamba: str | None


def debian_image_name(suite: str) -> str:
    """What the image of a suite is called where nobody asks for another name."""
    return f"{REPOSITORY}:debian-{suite}"


def debian_recipe(suite: str) -> DebianRecipe:
    """The recipe as this host would follow it now."""
    programs = _programs()
    mamba = programs.micromamba
    return DebianRecipe(
        suite=suite,
        uv=_version(programs.uv),
        micromamba=_version(mamba) if mamba else None,
        architecture=platform.machine(),
    )


def build_debian_image(
    engine: Engine,
    suite: str,
    *,
    name: str | None = None,
    mirror: str | None = None,
    rebuild: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Image:
    """Make the base image of a suite of Debian, or find the one that is there.

    Args:
        engine: Which engine gets it.
        suite: Such as bookworm.
        name: What to call it; `debian_image_name` if not given.
        mirror: Take packages from there, and not from where apt of this host does.
        rebuild: Make it even where one of the same recipe is there.
        say: Told in a line what is being done.

    Raises:
        SandboxError: the suite or mirror cannot be used, or the build failed.
        HostError: this host lacks a right, a program, room on its disk, or the network.
    """
    name = name or debian_image_name(suite)
    with alone(engine.name, name, say):
        return _found_or_made(engine, suite, name, mirror, rebuild, say)


def _found_or_made(
    engine: Engine,
    suite: str,
    name: str,
    mirror: str | None,
    rebuild: bool,
    say: Callable[[str], None],
) -> Image:
    recipe = debian_recipe(suite)
    there = find_image(engine, name)
    if there is not None and there.recipe == recipe.digest and not rebuild:
        say(f"{name} is there already, made by the same recipe (--rebuild makes it anew)")
        return there
    debootstrap = _debootstrap()
    require_room(engine, _ROOM_BYTES)
    mirror = find_mirror(suite, mirror)
    if recipe.micromamba is None:
        say("micromamba is left out: this host has none to copy")
    with scratch_folder() as folder:
        root = folder / "root"
        _install(debootstrap, recipe, mirror, root, folder / "log", say)
        _finish(root, recipe, mirror)
        say("packing")
        archive = folder / "root.tar"
        _tar(root, archive)
        say(f"importing {archive.stat().st_size / 1e6:.0f} MB into {engine.name}")
        changes = [f"ENV PATH={_PATH}", "ENV LANG=C.UTF-8", "WORKDIR /", 'CMD ["/bin/bash"]']
        for label, value in labels(recipe.digest, f"debian {suite}").items():
            changes.append(f'LABEL {label}="{value}"')
        options = [option for change in changes for option in ("--change", change)]
        engine.call("import", *options, str(archive), name, time_limit_s=_TIME_LIMIT_S)
    return image_of(engine, name)


def _debootstrap() -> str:
    if os.geteuid() != 0:
        raise HostError(
            "debootstrap needs root, and this is an ordinary user",
            advice="run it as root; or `reb image build`, which needs an image registry instead",
        )
    found = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:{_PATH}")
    if found is None:
        raise HostError("debootstrap is not installed", advice="apt-get install debootstrap")
    if not _KEYRING.is_file():
        raise HostError(
            f"{_KEYRING}, the keys of Debian's mirrors, is not there",
            advice="apt-get install debian-archive-keyring",
        )
    return found


def _install(
    debootstrap: str,
    recipe: DebianRecipe,
    mirror: str,
    root: Path,
    log: Path,
    say: Callable[[str], None],
) -> None:
    shown = [time.monotonic() - _QUIET_S]

    def show(line: str) -> None:
        now = time.monotonic()
        if line.startswith("I: ") and now - shown[0] >= _QUIET_S:
            shown[0] = now
            say(f"debootstrap: {line.removeprefix('I: ').strip('.')}")

    packages = ",".join(recipe.packages)
    argv = [debootstrap, "--variant=minbase", f"--keyring={_KEYRING}", f"--include={packages}"]
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    finished = process.run(
        [*argv, recipe.suite, str(root), mirror],
        cwd=Path("/"),
        env={"PATH": _PATH, "LC_ALL": "C.UTF-8", "TMPDIR": str(log.parent), **proxies},
        log=log,
        time_limit_s=_TIME_LIMIT_S,
        on_line=show,
    )
    if finished.ok:
        return
    lines = log.read_text(errors="replace").splitlines()
    wrong = [line for line in lines if line.startswith(("E: ", "W: "))] or lines[-5:]
    why = finished.start_error or "\n  ".join(wrong[-5:]) or f"exit {finished.exit_code}"
    advice = "set TMPDIR to a folder whose disk allows devices and programs (nodev, noexec)"
    if "No such script" in why:
        advice = f"this debootstrap does not know {recipe.suite}: install a newer one"
    elif "noexec" not in why:
        advice = "try again; where the mirror is at fault, --mirror URL names another"
    raise SandboxError(f"debootstrap failed: {why}", advice=advice)


def _finish(root: Path, recipe: DebianRecipe, mirror: str) -> None:
    """Bring uv, say where packages come from, and remove what only the installation needed."""
    programs = _programs()
    for found, name in ((programs.uv, "uv"), (programs.micromamba, "micromamba")):
        if found:
            target = root / "usr/local/bin" / name
            shutil.copyfile(found, target)
            target.chmod(0o755)
    for pattern in _LEFTOVERS:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (root / "etc/machine-id").write_text("")  # made by whatever needs one, not for all alike
    (root / "etc/apt/sources.list").write_text(f"deb {mirror} {recipe.suite} main\n")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_SERVICES)
    policy.chmod(0o755)
    for folder in ("tmp", "var/tmp"):
        (root / folder).chmod(0o1777)
    for name in ("python", "uv"):
        _try(root, name)


def _try(root: Path, name: str) -> None:
    """See that a program starts in there, before the image is made of it."""
    argv = ["chroot", str(root), "/usr/bin/env", f"PATH={_PATH}", name, "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SandboxError(
            f"{name} does not start in the new system: {done.stderr.strip()[-500:]}",
            advice="a uv that is linked to this host's libraries will not: pip install uv",
        )


def _tar(root: Path, archive: Path) -> None:
    # An engine brings its own /dev, /proc and /sys.
    left_out = [f"--exclude=./{folder}/*" for folder in ("dev", "proc", "sys")]
    argv = ["tar", "--numeric-owner", "--xattrs", *left_out, "-C", str(root), "-cf", str(archive)]
    done = subprocess.run([*argv, "."], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SandboxError(f"the new system cannot be packed: {done.stderr.strip()[-500:]}")


def _programs() -> _Programs:
    import uv

    return _Programs(uv.find_uv_bin(), shutil.which("micromamba"))


def _version(program: str) -> str:
    """The version that a program says it has: `uv 0.9.1 (…)` and `2.3.3`."""
    with suppress(OSError):
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        for word in done.stdout.split():
            if word[0].isdigit():
                return word
    raise HostError(f"{program} does not say its version", advice="see that it runs")
