"""Breakages: damage done to an environment inside one stage's box, to see it noticed.

The box's layer takes the damage and is thrown away with it; the frozen environment stays
what it was.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ..errors import TaskError
from ..sandbox import Command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..sandbox import Box
    from ..task import Breakage
    from .interpreter import Interpreter

_TIME_LIMIT_S = 900.0

#: Deletes what matches, and puts empty packages in place; the harness's interpreter runs it
#: in the box, since the judged one must not take part in its own damage.
_CHANGE = """
import json, pathlib, shutil, sys
order = json.loads(sys.argv[1])
for place in order["places"]:
    for pattern in order["remove"]:
        for path in pathlib.Path(place).glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            order["removed"] = True
    for name in order["stub"]:
        path = pathlib.Path(place, *name.split("."))
        if path.is_dir():
            shutil.rmtree(path)
            path.mkdir()
            path.joinpath("__init__.py").write_text("")
            order["removed"] = True
        elif path.with_suffix(".py").is_file():
            path.with_suffix(".py").write_text("")
            order["removed"] = True
sys.exit(0 if order["removed"] else 9)
"""


def apply_breakage(
    breakage: Breakage,
    box: Box,
    interpreter: Interpreter,
    environment: Mapping[str, str],
    log: Path,
) -> None:
    """Do the damage.

    Raises:
        TaskError: it could not be done, so the breakage would prove nothing.
    """
    import uv

    install = [uv.find_uv_bin(), "pip"]
    target = ["--python", interpreter.executable]
    commands = []
    if breakage.uninstall:
        commands.append([*install, "uninstall", *target, *breakage.uninstall])
    if breakage.install:
        deps = ["--no-deps"] if breakage.no_deps else []
        commands.append([*install, "install", *target, *deps, *breakage.install])
    if breakage.remove or breakage.stub:
        order = {
            "places": sorted({interpreter.purelib, interpreter.platlib}),
            "remove": breakage.remove,
            "stub": breakage.stub,
            "removed": False,
        }
        commands.append([sys.executable, "-I", "-S", "-c", _CHANGE, json.dumps(order)])
    for argv in commands:
        finished = box.run(
            Command(argv, box.layout.work, environment, _TIME_LIMIT_S), log, append=True
        )
        if not finished.ok:
            raise TaskError(
                f"the breakage could not be applied: {' '.join(argv[1:4])} … ended with "
                f"{finished.exit_code}",
                advice=f"see {log}; nothing matched, or the index did not answer",
            )
