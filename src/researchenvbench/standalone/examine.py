"""Runs `examine(order)` of a module in `look`, and leaves its answer in a file.

How the harness looks at what lies in a box: `sandbox.examine` is its side. An answer has what
was `found`, or why the look was `refused`: what cannot be looked at was left by whoever made
it, and is no failure of the host.
"""

from __future__ import annotations

import importlib
import json
import marshal
import os
import sys

_SHOWN = 500

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def look(module: str, order: dict[str, Any]) -> dict[str, Any]:
    """What the module finds, or in words why it cannot look at what lies there."""
    number = 0
    try:
        return {"found": importlib.import_module(f"standalone.look.{module}").examine(order)}
    except OSError as error:
        number = error.errno or 0
        why = f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    except Exception as error:  # noqa: BLE001 - whatever it was, who asked is told
        why = f"{type(error).__name__}: {str(error)[:_SHOWN]}".removesuffix(": ")
    return {"refused": f"what was left cannot be looked at ({module}): {why}", "errno": number}


def main() -> NoReturn:
    """Run with the package's folder, the module, the order's file and the answer's."""
    module, question, answer = sys.argv[2:]
    with open(question, "rb") as stream:
        order = marshal.load(stream)  # noqa: S302 - written by the harness
    answered = look(module, order)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(answer, flags, 0o600), "w", encoding="ascii") as stream:
        json.dump(answered, stream)  # ASCII: surrogates of names that are no UTF-8 survive
    os._exit(0)
