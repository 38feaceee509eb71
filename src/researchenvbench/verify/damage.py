"""Breakages: damage done to an environment inside one stage's box, to see it noticed.

A damaged subject is judged as any other: its boxes open with the damage done. The box's
layer takes it and is thrown away with it; the frozen environment stays what it was.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..diagnose import last_lines
from ..errors import SandboxError, TaskError
from ..sandbox import NO_ASSETS, Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..sandbox import HostEnvironment, StageBox
    from ..task import Breakage
    from .interpreter import Interpreter
    from .subject import Subject

_TIME_LIMIT_S = 900.0

#: Deletes what matches, puts empty packages in place, adds code. The harness's interpreter runs it
#: in the box, since the judged one must not take part in its own damage. Installers end well
#: when there is nothing to uninstall, so it is asked here. Its last line is the reason.
_CHANGE = """
import importlib.metadata, json, pathlib, re, shutil, sys
order = json.loads(sys.argv[1])
def same(name):
    return re.sub("[-_.]+", "-", name).lower()
installed = {
    same(found.metadata["Name"] or "")
    for found in importlib.metadata.distributions(path=order["places"])
}
for name in order["uninstall"]:
    if same(name) not in installed:
        sys.exit("nothing matches uninstall: %s is not installed" % name)
removed, stubbed, appended = False, set(), set()
for place in order["places"]:
    for pattern in order["remove"]:
        for path in pathlib.Path(place).glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            removed = True
    for name in order["stub"]:
        path = pathlib.Path(place, *name.split("."))
        if path.is_dir():
            shutil.rmtree(path)
            path.mkdir()
            path.joinpath("__init__.py").write_text("")
            stubbed.add(name)
        elif path.with_suffix(".py").is_file():
            path.with_suffix(".py").write_text("")
            stubbed.add(name)
    for name, code in order["append"].items():
        path = pathlib.Path(place, name)
        if path.is_file():
            with path.open("a", encoding="utf-8") as stream:
                stream.write("\\n" + code)
            appended.add(name)
if order["remove"] and not removed:
    sys.exit("nothing matches remove: " + ", ".join(order["remove"]))
for name in order["stub"]:
    if name not in stubbed:
        sys.exit("nothing matches stub: there is no package %s" % name)
for name in order["append"]:
    if name not in appended:
        sys.exit("nothing matches append: there is no file %s" % name)
"""


def damaged(
    subject: Subject, breakage: Breakage, interpreter: Interpreter, host: HostEnvironment
) -> Subject:
    """The subject as the breakage leaves it: every box of it opens with the damage done.

    What applying it printed is in `damage.log` among the subject's logs. Opening a box
    raises TaskError where the damage cannot be done, and SandboxError where this host would
    do it to the environment itself.
    """

    @contextmanager
    def open_box(
        *,
        network: bool = False,
        gpus: Sequence[str] = (),
        assets: Mapping[str, Path] = NO_ASSETS,
    ) -> Iterator[StageBox]:
        log = subject.logs / "damage.log"
        log.unlink(missing_ok=True)
        network = network or bool(breakage.install)
        with subject.open_box(network=network, gpus=gpus, assets=assets) as box:
            if box.freshness.kind == "in-place":
                raise SandboxError(
                    "the breakage was not applied: this host gives stages no layer of their "
                    f"own, so the damage would stay ({box.freshness.why})",
                    advice="reb doctor says what layers need",
                )
            environment = box.variables(host, installs=True)
            apply_breakage(breakage, box, interpreter, environment, log)
            yield box

    return dataclasses.replace(subject, open_box=open_box)


def apply_breakage(
    breakage: Breakage,
    box: StageBox,
    interpreter: Interpreter,
    environment: Mapping[str, str],
    log: Path,
) -> None:
    """Do the damage.

    Raises:
        TaskError: it could not be done, so the breakage would prove nothing.
    """
    # A host on which nothing is installed may have no uv.
    install = [box.uv, "pip"] if breakage.uninstall or breakage.install else []
    target = ["--python", interpreter.executable]
    commands = []
    if breakage.uninstall or breakage.remove or breakage.stub or breakage.append:
        order = {
            "places": sorted({interpreter.purelib, interpreter.platlib}),
            "uninstall": breakage.uninstall,
            "remove": breakage.remove,
            "stub": breakage.stub,
            "append": breakage.append,
        }
        commands.append([*box.tools.python, "-I", "-S", "-c", _CHANGE, json.dumps(order)])
    if breakage.uninstall:
        commands.append([*install, "uninstall", *target, *breakage.uninstall])
    if breakage.install:
        deps = ["--no-deps"] if breakage.no_deps else []
        commands.append([*install, "install", *target, *deps, *breakage.install])
    for argv in commands:
        finished = box.run(
            Command(argv, box.layout.work, environment, _TIME_LIMIT_S), log, append=True
        )
        if not finished.ok:
            how = f"after {_TIME_LIMIT_S:.0f} s" if finished.timed_out else last_lines(log, 1)
            raise TaskError(
                f"the breakage could not be applied: {finished.start_error or how}",
                advice=f"see {log}",
            )
