"""Which model an agent works with, and how it reaches it: through the relay, by a token."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from ..errors import INSTALL_AGENTS, HostError, RebError
from ..model_use import Wire  # noqa: TC001  # its models are checked by it
from ..stored import Stored, write_atomically

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from ..relay import Relay

#: The folder of an attempt in which the relay keeps what passed.
MODEL_FOLDER = "model"
#: Where the relay listened: programs in a box that outlived the harness ask there again.
_PORT = "port"
#: What the relay is made of; without genai-prices there are tokens, and no cost.
_LIBRARIES = ("httpx", "uvicorn")
#: The makers' own addresses and the variables in which their users keep keys.
_DEFAULTS: dict[Wire, tuple[str, str]] = {
    "anthropic-messages": ("https://api.anthropic.com", "env:ANTHROPIC_API_KEY"),
    "openai-responses": ("https://api.openai.com/v1", "env:OPENAI_API_KEY"),
    "openai-chat": ("https://api.openai.com/v1", "env:OPENAI_API_KEY"),
}


class ModelChoice(Stored):
    """The model of a run, as it is kept with its jobs. The key is named, and is not here."""

    name: str
    wire: Wire
    upstream: str = Field(description="The provider's base address.")
    key: str = Field(description="Where the key is: env:NAME, file:PATH or keyring:SERVICE/USER.")
    tokens: int | None = Field(None, description="Budget of each build.")
    usd: float | None = Field(None, description="Budget of each build.")
    prices: str | None = Field(None, description="The user's table of prices: a file.")
    preset: str | None = Field(None, description="By which it was chosen, such as paper/codex.")

    @classmethod
    def of(
        cls,
        name: str,
        wire: Wire,
        *,
        upstream: str | None = None,
        key: str | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        prices: str | None = None,
        preset: str | None = None,
    ) -> ModelChoice:
        """A choice, with the maker's own address and variable where none is named.

        Raises:
            RebError: another address was named, and no key for it: a key goes to its own
                provider only.
        """
        address, variable = _DEFAULTS[wire]
        if key is None and upstream not in (None, address):
            raise RebError(
                f"{upstream} is not the address that {variable} is for",
                advice="name its key: --key env:NAME, file:PATH or keyring:SERVICE/USER",
            )
        return cls(
            name=name,
            wire=wire,
            upstream=address if upstream is None else upstream,
            key=variable if key is None else key,
            tokens=tokens,
            usd=usd,
            prices=str(Path(prices).absolute()) if prices else None,
            preset=preset,
        )

    @property
    def decides(self) -> tuple[object, ...]:
        """What of it another build is due to when it changes: not the key, nor prices."""
        return (self.name, self.wire, self.upstream, self.tokens, self.usd)

    @property
    def limits(self) -> tuple[str, ...]:
        """What an agent is told of its budget, a line each."""
        lines = []
        if self.tokens is not None:
            lines.append(f"Tokens of the model: {self.tokens}, read and written, in all.")
        if self.usd is not None:
            lines.append(f"Cost of the model: {self.usd:g} US dollars in all.")
        return tuple(lines)

    def check(self) -> None:
        """See that the model can be asked, before anything is built; nothing is sent.

        Raises:
            RebError: an address that is none, a key that is not there, a budget in money for a
                model without a price, or a library that is absent.
        """
        for library in _LIBRARIES:
            if find_spec(library) is None:
                raise _absent(library)
        with tempfile.TemporaryDirectory() as folder:
            self.relay(Path(folder)).close()

    def relay(self, folder: Path) -> Relay:
        """The relay to this model, which keeps what passes in `folder`.

        Raises:
            RebError: as `check`.
        """
        from ..relay import Budget, KeySource, Prices, Provider, Relay

        return Relay(
            Provider(self.wire, self.upstream, self.name),
            KeySource.parse(self.key).read(),
            folder,
            budget=Budget(self.tokens, self.usd),
            prices=Prices.load(Path(self.prices)) if self.prices else Prices(),
        )


def _absent(library: str) -> RebError:
    return RebError(
        f"agents with a language model need the library {library}, which is not installed",
        advice=INSTALL_AGENTS,
    )


@dataclass(frozen=True)
class ModelAccess:
    """How one build reaches its model."""

    name: str
    wire: Wire
    address: str  #: of the relay as the agent sees it, without a path
    token: str  #: what the relay asks for in place of a key; of no use elsewhere
    relay: Relay


@contextmanager
def open_access(
    choice: ModelChoice,
    folder: Path,
    listen: Callable[[int], socket.socket],
    *,
    resumed: bool,
) -> Iterator[ModelAccess]:
    """A relay that serves while the context is open.

    Args:
        choice: Which model.
        folder: Of the attempt.
        listen: Makes the socket on which it serves; 0 lets the system choose the port.
        resumed: Whether the build is gone on with. If not, what an earlier one has used is
            counted as lost.

    Raises:
        RebError: the model cannot be asked.
        HostError: no socket can be had.
    """
    from ..relay import move_lost

    place = folder / MODEL_FOLDER
    if place.is_dir() and not resumed:
        move_lost(place)
    place.mkdir(exist_ok=True)
    with choice.relay(place) as relay, _listening(place, listen) as (listening, address):
        relay.serve([listening])
        yield ModelAccess(choice.name, choice.wire, address, relay.token, relay)


@contextmanager
def _listening(
    place: Path, listen: Callable[[int], socket.socket]
) -> Iterator[tuple[socket.socket, str]]:
    port = 0
    with suppress(OSError, ValueError):
        port = int((place / _PORT).read_text())
    try:
        listening = listen(port)
    except HostError:
        if not port:
            raise
        listening = listen(0)  # somebody else has it by now
    with listening:
        host, port = listening.getsockname()[:2]
        write_atomically(place / _PORT, str(port))
        yield listening, f"http://{host}:{port}"
