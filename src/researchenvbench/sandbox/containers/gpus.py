"""How containers are shown GPUs: which arguments the engines need, and which names are known.

podman gets devices by CDI, of which files of this host say what belongs to each; docker asks
NVIDIA's runtime. Which names a CDI file has depends on who made it: numbers, or UUIDs too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...gpu.inventory import inventory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...gpu.inventory import Gpu
    from ..engines.engine import Engine

#: Where engines look for CDI files.
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
CDI_KIND = "nvidia.com/gpu"
_NAME = re.compile(r"""(?:^|[{,])[\s-]*["']?name["']?\s*:\s*["']?([A-Za-z0-9][\w.:-]*)""", re.M)


def devices(
    engine: Engine, gpus: Sequence[str], folders: Sequence[Path] = CDI_FOLDERS
) -> list[str]:
    """Flags that show GPUs, and slices of GPUs, given by UUID, and no others.

    Args:
        engine: Whose flags.
        gpus: UUIDs.
        folders: Where CDI files are.
    """
    if not gpus:
        return []
    if not engine.dialect.is_podman:
        return ["--gpus", f'"device={",".join(gpus)}"']
    known = cdi_names(folders)
    numbers = {gpu.uuid: gpu.number for gpu in inventory({}).gpus}
    # A number in a file may be of another order than the driver's today; a UUID cannot.
    names = [uuid if uuid in known else numbers.get(uuid, uuid) for uuid in gpus]
    return [f"--device={CDI_KIND}={name}" for name in names]


def in_container(gpus: Sequence[Gpu]) -> list[str]:
    """By what programs in a container know its GPUs: those that were asked for are all there."""
    return [
        str(number) if gpu.slice_number is None else gpu.uuid for number, gpu in enumerate(gpus)
    ]


def cdi_files(folders: Sequence[Path] = CDI_FOLDERS) -> list[Path]:
    """The files that tell podman which devices and libraries a GPU is."""
    return [file for file, _ in _specifications(folders)]


def cdi_names(folders: Sequence[Path] = CDI_FOLDERS) -> set[str]:
    """The names that those files have for GPUs, such as `0`, `0:1`, a UUID, `all`."""
    return {name for _, text in _specifications(folders) for name in _NAME.findall(text)}


def _specifications(folders: Sequence[Path]) -> list[tuple[Path, str]]:
    found = []
    for folder in folders:
        for file in sorted(folder.glob("*")) if folder.is_dir() else ():
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if CDI_KIND in text and file.suffix in (".yaml", ".yml", ".json"):
                found.append((file, text))
    return found
