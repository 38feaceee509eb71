"""The paper's base image, made by the engine from our `Containerfile`.

Its base is named by tag and used by digest (`lock`). What this host needs to reach
package indexes is handed to the steps of the build as files that are mounted while a step
runs, so that neither the image nor its history holds any of it.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ... import process
from ..host_environment import host_environment, redacted
from .base import REPOSITORY, Image, find_image, image_of, labels, recipe_digest, require_room
from .lock import is_local, resolve
from .scratch import alone, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..engines.engine import Engine

#: The base that the paper names: CUDA 12.4.1 with its compilers, on Ubuntu 22.04.
PAPER_BASE = "docker.io/nvidia/cuda:12.4.1-devel-ubuntu22.04"
PAPER_IMAGE = f"{REPOSITORY}:cuda12.4.1-ubuntu22.04"
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
MICROMAMBA = "2.3.3"
CONTAINERFILE = Path(__file__).with_name("Containerfile")

_ROOM_BYTES, _ROOM_LOCAL_BYTES = 20_000_000_000, 4_000_000_000
_TIME_LIMIT_S = 4 * 3600.0
#: Between two lines of progress within a step.
_QUIET_S = 5.0
_CERTIFICATES = "/run/secrets/reb-certificates"
_CERTIFICATE_NAMES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Settings of the host that have a meaning in a build; others name folders of the host.
_HANDED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
_HANDED_ON_TO_UV = ("UV_PYTHON_INSTALL_MIRROR",)


@dataclass(frozen=True)
class ContainerfileRecipe:
    """What is asked of the Containerfile."""

    base: str = PAPER_BASE
    pythons: tuple[str, ...] = PYTHONS  #: besides the base's own; none where GitHub is not there
    micromamba: str | None = MICROMAMBA  #: version; None: leave it out
    micromamba_sha256: str | None = None  #: of its archive; None: not checked

    def build_arguments(self, base: str) -> dict[str, str]:
        """The arguments of the build, on a base that is given by digest or id."""
        return {
            "BASE": base,
            "UV_VERSION": metadata.version("uv"),
            "PYTHONS": " ".join(self.pythons),
            "MICROMAMBA": self.micromamba or "",
            "MICROMAMBA_SHA256": self.micromamba_sha256 or "",
        }


def build_containerfile_image(
    engine: Engine,
    recipe: ContainerfileRecipe,
    lock_file: Path,
    *,
    name: str = PAPER_IMAGE,
    rebuild: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Image:
    """Make the base image from the Containerfile, or find the one that is there.

    Args:
        engine: Which engine makes it.
        recipe: What is to be in it.
        lock_file: Where the digest of the base is noted.
        name: What to call it.
        rebuild: Make it even where one of the same recipe is there.
        say: Told in a line what is being done.

    Raises:
        SandboxError: the base cannot be had, or the build failed, with the engine's words.
        HostError: the engine does not answer, or there is no room on the disk.
        RecordError: the lock cannot be read.
    """
    with alone(engine.name, name, say):
        return _found_or_made(engine, recipe, lock_file, name, rebuild, say)


def _found_or_made(
    engine: Engine,
    recipe: ContainerfileRecipe,
    lock_file: Path,
    name: str,
    rebuild: bool,
    say: Callable[[str], None],
) -> Image:
    require_room(engine, _ROOM_LOCAL_BYTES if is_local(recipe.base) else _ROOM_BYTES)
    base = resolve(engine, recipe.base, lock_file, say)
    arguments = recipe.build_arguments(base)
    digest = recipe_digest(
        {
            "containerfile": CONTAINERFILE.read_text(encoding="utf-8"),
            "arguments": arguments,
            "architecture": platform.machine(),
        }
    )
    there = find_image(engine, name)
    if there is not None and there.recipe == digest and not rebuild:
        say(f"{name} is there already, made by the same recipe (--rebuild makes it anew)")
        return there
    shown_base = (
        f"{recipe.base} ({base.removeprefix('sha256:')[:12]})" if is_local(recipe.base) else base
    )
    before = _unfinished(engine)
    try:
        with scratch_folder() as folder:
            # Of its own and empty: docker hands all of it to its daemon.
            context = folder / "context"
            context.mkdir()
            argv = build_argv(
                engine,
                name,
                arguments=arguments,
                labels=labels(digest, shown_base),
                secrets=host_secrets(folder, host_environment().installs, os.environ),
                context=context,
            )
            _build(engine, argv, folder, say)
    except BaseException:
        # podman, when it is ended, leaves the container in which it ran the step.
        base_image = find_image(engine, base)
        for container, image_id in _unfinished(engine).items():
            if container not in before and base_image and base_image.id.endswith(image_id):
                engine.remove(container)
        raise
    return image_of(engine, name)


def _build(engine: Engine, argv: list[str], folder: Path, say: Callable[[str], None]) -> None:
    log = folder / "log"
    shown = [time.monotonic()]

    def show(line: str) -> None:
        """The steps, and now and then where a long one is."""
        if line.startswith(_STEPS) or time.monotonic() - shown[0] >= _QUIET_S:
            shown[0] = time.monotonic()
            say(redacted(line)[:100])

    finished = process.run(
        argv,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        log=log,
        time_limit_s=_TIME_LIMIT_S,
        on_line=show,
    )
    if not finished.ok:
        words = finished.start_error or redacted(log.read_text(errors="replace"))
        raise engine.trouble("build", words.encode())


def _unfinished(engine: Engine) -> dict[str, str]:
    """Containers of builds that podman runs or has left, with the ids of their images."""
    if not engine.dialect.leaves_steps:
        return {}
    listed = json.loads(engine.call("ps", "--all", "--external", "--format", "json"))
    return {
        str(container["Id"]): str(container["ImageID"])
        for container in listed
        if container["Command"] == ["buildah"]
    }


#: How podman and docker begin the line that names a step.
_STEPS = ("STEP ", "Step ", "#")


def build_argv(
    engine: Engine,
    name: str,
    *,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    secrets: Mapping[str, Path],
    context: Path,
) -> list[str]:
    """The command line that makes the image and keeps no image of a step in between."""
    argv = engine.argv(
        "build", *engine.run_flags, *engine.dialect.build, "--force-rm", "--tag", name
    )
    for key, value in arguments.items():
        argv += ["--build-arg", f"{key}={value}"]
    for key, value in labels.items():
        argv += ["--label", f"{key}={value}"]
    for key, path in secrets.items():
        argv += ["--secret", f"id={key},src={path}"]
    return [*argv, "--file", str(CONTAINERFILE), str(context)]


def host_secrets(
    folder: Path, installs: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, Path]:
    """What the steps need of this host, as files: settings for the shell, and certificates."""
    settings = {name: installs[name] for name in _HANDED_ON if name in installs}
    settings = {name: _reachable(value) for name, value in settings.items()}
    settings |= {name: environ[name] for name in _HANDED_ON_TO_UV if name in environ}
    settings |= {name: value for name, value in installs.items() if name.lower().endswith("_proxy")}
    certificates = next((installs[name] for name in _CERTIFICATE_NAMES if name in installs), None)
    content = Path(certificates).read_bytes() if certificates else b""
    if content:
        settings |= dict.fromkeys(_CERTIFICATE_NAMES, _CERTIFICATES)
    shell = "".join(
        f"export {name}={shlex.quote(value)}\n" for name, value in settings.items() if value
    )
    files = {"reb-host": folder / "host.sh", "reb-certificates": folder / "certificates"}
    files["reb-host"].write_text(shell)
    files["reb-certificates"].write_bytes(content)
    return files


def _reachable(value: str) -> str:
    """The addresses without those of files, which a build does not see."""
    return " ".join(word for word in value.split() if not word.startswith(("file:", "/")))
