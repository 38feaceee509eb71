"""The driver of driver.c, compiled, and what it is told to show."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent / "driver.c"
NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libcupti.so.13")
#: Slices of the first card, whose numbers have a gap.
SLICES = {
    1: "MIG-a1112131-4151-6171-8191-a1b1c1d1e1f1",
    4: "MIG-b1112131-4151-6171-8191-a1b1c1d1e1f1",
}
UUIDS = tuple(f"GPU-{number}1112131-4151-6171-8191-a1b1c1d1e1f1" for number in range(4))


class Driver:
    """The driver that this session's tests have."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        self.state.mkdir()
        made = folder / NAMES[0]
        compiler = ["cc", "-O1", "-shared", "-fPIC", f'-DSTATE="{self.state}"']
        # By this name, once it is loaded, whoever asks for it in this process finds it.
        named = ["-Wl,-soname,libnvidia-ml.so.1", SOURCE, "-o", made]
        subprocess.run([*compiler, *named], check=True)
        for name in NAMES[1:]:
            (folder / name).symlink_to(made)
        ctypes.CDLL(str(folder / NAMES[1]), mode=ctypes.RTLD_GLOBAL)

    def show(self, count: int) -> None:
        """Have the host have so many GPUs."""
        lines = [f"{uuid} H200 9 0 150000000000\n" for uuid in UUIDS[:count]]
        (self.state / "gpus").write_text("".join(lines))

    def cut(self, slices: dict[int, str] = SLICES) -> None:
        """Have the first card cut into these MIG slices, by number."""
        lines = [f"0 {number} {uuid}\n" for number, uuid in slices.items()]
        (self.state / "slices").write_text("".join(lines))

    def say(self, **values: int) -> None:
        """Have NVML say these numbers: lost (a card and 1), mig, compute_mode, …"""
        lines = [f"{name.replace('_', '-')} {number}\n" for name, number in values.items()]
        (self.state / "values").write_text("".join(lines))

    def fail(self, **faults: object) -> None:
        """Have functions give a code, or hang, from now on."""
        lines = [f"{name} {what}\n" for name, what in faults.items()]
        (self.state / "faults").write_text("".join(lines))

    def forget(self) -> None:
        """As it was when the host was started."""
        shutil.rmtree(self.state)
        self.state.mkdir()
