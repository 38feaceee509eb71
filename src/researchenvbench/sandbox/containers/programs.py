"""An image that is a base with an agent's program in it: made once, and kept.

The program lies in a layer of its own above the base, so that builds by one agent share it and
their own layers hold only what the agent has done. It is no base image: none is chosen by
being the newest, and what the record calls the base is its base.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...owner import this_owner
from ..engines.engine import LABEL
from ..images.base import BASE_LABEL, KIND_LABEL, RECIPE_LABEL, find_image, image_of, recipe_digest
from ..images.scratch import alone
from .copies import copy_tree
from .inventory import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from .. import Program
    from ..engines.engine import Engine
    from ..images.base import Image

#: What every such image is called before its tag.
REPOSITORY = "localhost/researchenvbench/agent"
#: Where the program lies in it.
PLACE = Path("/opt/agent")
_SHOWN = 12


def image_with(
    engine: Engine, base: Image, program: Program, say: Callable[[str], None] = lambda _: None
) -> Image:
    """The image of `base` with `program` in it, made where it is not there yet.

    Raises:
        SandboxError: it cannot be made, with the engine's words.
        HostError: the engine does not answer, or there is no room on the disk.
    """
    digest = recipe_digest({"base": base.id, "program": program.digest})
    name = f"{REPOSITORY}:{program.name}-{program.version}-{digest[7:][:_SHOWN]}"
    with alone(engine.name, name, say):
        there = find_image(engine, name)
        if there is not None and there.recipe == digest:
            return there
        say(f"putting {program.name} {program.version} into an image on {base.name}")
        container = engine.ask(
            *("create", "--pull", "never", *engine.run_flags, "--network", "none"),
            *("--label", f"{LABEL}.kind=probe", "--label", f"{OWNER}={this_owner()}"),
            *("--entrypoint", "", base.id, "/bin/true"),
        ).splitlines()[-1]
        try:
            copy_tree(engine, container, program.folder, PLACE, {})
            changes = (
                f"LABEL {KIND_LABEL}=agent",
                f"LABEL {RECIPE_LABEL}={digest}",
                f"LABEL {BASE_LABEL}={base.name}",
            )
            flags = [part for change in changes for part in ("--change", change)]
            engine.call("commit", *engine.dialect.commit, *flags, container, name)
        finally:
            engine.remove(container)
    return image_of(engine, name)
