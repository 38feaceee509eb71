"""How the harness and a program that stands alone talk, over two pipes.

The order comes by the control pipe as a marshalled dictionary, which costs no import. That
pipe stays open: anything more that comes means stop, and its end means that the harness has
died. The answer leaves by the status pipe as a Python literal, which the harness reads
without trusting it.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_BYTES = 8


def encode_order(order: dict[str, Any]) -> bytes:
    """The order as it goes through the control pipe."""
    content = marshal.dumps(order)
    return len(content).to_bytes(_LENGTH_BYTES, "little") + content


def read_order(control: int) -> dict[str, Any]:
    """The order that comes by `control`, and no byte after it.

    Raises:
        EOFError: the harness has died before it gave one.
    """
    length = int.from_bytes(_read(control, _LENGTH_BYTES), "little")
    order: dict[str, Any] = marshal.loads(_read(control, length))  # noqa: S302 - from our parent
    return order


def answer(status: int, content: dict[str, object]) -> None:
    """Tell the harness, if it is still there."""
    left = memoryview(ascii(content).encode("ascii"))
    try:
        while left:
            left = left[os.write(status, left) :]
    except BrokenPipeError:
        return  # nobody is left to be told


def _read(handle: int, wanted: int) -> bytes:
    received = b""
    while len(received) < wanted:
        chunk = os.read(handle, wanted - len(received))
        if not chunk:
            raise EOFError
        received += chunk
    return received
