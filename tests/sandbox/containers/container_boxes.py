"""What tests of containers do again and again."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox import Command
from researchenvbench.sandbox.containers.given import ATTEMPT_KEY, attempt_key
from researchenvbench.sandbox.engines.engine import LABEL
from researchenvbench.sandbox.engines.finding import find_engine
from researchenvbench.sandbox.host_environment import host_environment
from researchenvbench.standalone.tree import descendants


def run(box, line, log, *, cwd=None, time_limit_s=60, **env):
    """Run a shell line in a box; how it ended, and what it printed."""
    variables = {**box.variables(host_environment(), installs=False), **env}
    folder = cwd or (box.layout.work if hasattr(box, "freshness") else box.layout.repo)
    finished = box.run(Command(["/bin/sh", "-c", line], folder, variables, time_limit_s), log)
    return finished, log.read_text(errors="replace")


def ours(attempt):
    """Containers of an attempt, running or not."""
    mine = f"label={ATTEMPT_KEY}={attempt_key(attempt)}"
    return find_engine("podman").listed("ps", "--all", "--filter", mine)


def images_of(attempt):
    """Images of an attempt, with and without a name."""
    engine = find_engine("podman")
    kind = f"label={LABEL}.kind=environment"
    found = []
    for image in engine.listed("image", "ls", "--all", "--filter", kind):
        with suppress(SandboxError):  # another test's, which is gone
            facts = json.loads(engine.call("image", "inspect", image))[0]
            if facts["Config"]["Labels"].get(f"{LABEL}.attempt") == str(attempt.resolve()):
                found.append(image)
    return found


def kill_all(harness):
    """Kill a started harness and all that it has started, but not who watches over containers."""
    for pid, name in descendants(harness.pid).items():
        if name != "conmon":
            with suppress(ProcessLookupError):  # it has ended since the listing
                os.kill(pid, signal.SIGKILL)
    harness.kill()
    harness.wait()
    harness.stdout.close()
