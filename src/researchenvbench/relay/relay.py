"""The relay of one attempt, as the harness sees it."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Self

from ..errors import RebError, RecordError
from .desk import Desk
from .patience import Patience
from .prices import Prices
from .provider import Budget
from .record import Record
from .redaction import Redactor
from .server import ServerThread

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from pathlib import Path

    from ..model_use import Call, ModelUse
    from .keys import Key
    from .provider import Provider

_TOKEN = "token"  # noqa: S105  # the name of a file
REQUEST_LIMIT = 64 << 20


class Relay:
    """Stands between an agent's program and the provider of its model.

    It counts from its making on, with what `folder` has of the same build, and passes requests
    on from `serve` to `close`.
    """

    def __init__(
        self,
        provider: Provider,
        key: Key,
        folder: Path,
        *,
        budget: Budget | None = None,
        prices: Prices | None = None,
        token: str | None = None,
        patience: Patience | None = None,
        request_limit: int = REQUEST_LIMIT,
    ) -> None:
        """Open the record in `folder`, which is made where it is absent.

        `token` is what the agent's program shows as its key; by default the one that is kept
        in the folder, or a new one. `request_limit` is in bytes.

        Raises:
            RebError: a budget in dollars for a model without a price.
            RecordError: the folder or what lies in it is of no use.
        """
        budget = budget or Budget()
        prices = prices or Prices()
        if budget.usd is not None:
            prices.must_know(provider.model, upstream=provider.upstream)
        self.token = token or _kept_token(folder)
        hidden = [self.token] + ([key.reveal()] if key.is_secret else [])
        redactor = Redactor(hidden)
        self._record = Record(folder, redactor)
        _keep_token(folder, self.token)
        self._desk = Desk(
            provider=provider,
            key=key,
            token=self.token,
            budget=budget,
            prices=prices,
            patience=patience or Patience(),
            record=self._record,
            redactor=redactor,
            folder=folder,
            request_limit=request_limit,
        )
        self._server: ServerThread | None = None

    def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Take requests on listening sockets, which are the relay's from now on.

        Raises:
            HostError: the server cannot start.
        """
        if self._server is not None:
            raise RebError("the relay serves already")
        self._desk.passed()
        self._server = ServerThread(self._desk, list(sockets))

    def close(self) -> None:
        """End; requests that are under way are broken off. The record is whole then."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def calls(self) -> list[Call]:
        """The calls that have ended."""
        return self._record.calls

    @property
    def waited_s(self) -> float:
        """Time lost to the provider's faults, with a wait that goes on; to be given back."""
        return self._desk.waited_s

    @property
    def exhausted(self) -> str:
        """Which budget is used up, in words; empty where none is."""
        return self._desk.exhausted

    @property
    def problem(self) -> str:
        """Why a budget cannot be kept, in words; empty where it can, or there is none."""
        return self._desk.problem

    @property
    def trouble(self) -> str:
        """Why the record is not whole, such as a full disk, in words; empty where it is."""
        return self._record.trouble

    def quiet_s(self) -> float:
        """Seconds since anything passed."""
        return self._desk.quiet_s

    def use(self) -> ModelUse:
        """What was used, for the record."""
        return self._desk.use()


def _kept_token(folder: Path) -> str:
    """The token of this build, or a new one."""
    try:
        text = folder.joinpath(_TOKEN).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{folder / _TOKEN}: cannot be read: {error}") from error
    return text or f"reb-{secrets.token_hex(24)}"


def _keep_token(folder: Path, token: str) -> None:
    """For a harness that comes back while the agent's program runs on."""
    path = folder / _TOKEN
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(token)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from error
