"""An environment as it lies there: its interpreter, its start-up hooks, its frameworks.

Facts for `verify.integrity.prefix`, gathered by the harness's own Python: the interpreter
that is judged is not asked about itself.
"""

from __future__ import annotations

from .paths import Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """What is at `path`.

    Args:
        order: `path`, the interpreter, as a shim of pyenv finds it from `folder`; `home`,
            that of the processes to come; `user_bases`, other folders
            that may hold the user's site-packages; `answered`, what the interpreter says of itself;
            `hooks`, whether they are wanted; `frameworks`, what is
            looked for by name (`frameworks.framework`); `within`, the folder that the build
            was given; `root`, which folder is `/`.
    """
    from . import distributions, frameworks, hooks, launch, layout

    root = Root(order.get("root", "/"))
    steps = launch.follow(root, order["path"], order.get("folder", ""))
    found: dict[str, Any] = {"steps": steps, "hooks": [], "frameworks": {}, "distributions": []}
    if steps[-1]["kind"] != "elf":
        return found
    user_bases = order.get("user_bases", [])
    places = layout.layout(
        root, steps, order.get("home", ""), order.get("answered", {}), user_bases
    )
    found["places"] = places
    if order.get("hooks"):
        found["hooks"] = hooks.hooks(root, places)
        found["distributions"] = distributions.changed(root, places, order.get("within", "/"))
        found["library"] = distributions.changed_library(root, places)
    for name, wanted in order.get("frameworks", {}).items():
        found["frameworks"][name] = frameworks.framework(root, places, wanted)
    return found
