"""Whether a request of an agent's program may be passed on."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .desk import Desk
    from .provider import ApiPath

# Of ASGI, by which the server and what it serves speak.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Longer ones no protocol has, and no address can hold.
_QUERY_CHARACTERS = 2000


class RefusedRequestError(Exception):
    """The relay does not pass a request on; with the status of its answer, and why."""

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


class GoneError(Exception):
    """The agent's program went away before its request was whole."""


@dataclass
class Incoming:
    """A request, as far as it has been read."""

    method: str
    path: str
    query: str
    headers: list[tuple[bytes, bytes]]
    model: str = ""
    body: bytes = field(default=b"", repr=False)
    held_bytes: int = 0  #: of the body, in memory

    @classmethod
    def of(cls, scope: Scope) -> Incoming:
        """Its head."""
        return cls(
            method=scope["method"][:20],
            path=scope["raw_path"].decode("latin-1"),
            query=scope["query_string"].decode("latin-1"),
            headers=list(scope["headers"]),
        )

    async def check(self, desk: Desk, receive: Receive) -> ApiPath:
        """Read the body; the path that was asked for.

        Raises:
            RefusedRequestError: it may not be passed on.
            GoneError: there is nobody any more to answer to.
        """
        if not self._has_token(desk.token.encode()):
            raise RefusedRequestError(401, "this relay wants the token of its attempt as the key")
        path = desk.provider.path(self.method, self.path)
        if path is None:
            raise RefusedRequestError(
                404,
                f"this relay passes no {self.method} {self.path[:200]} on ({desk.provider.wire})",
            )
        if len(self.query) > _QUERY_CHARACTERS:
            raise RefusedRequestError(414, "the query of the request is too long")
        await self._read(desk, receive)
        if path.names_model:
            self._check_model(desk)
        if path.writes and desk.exhausted:
            raise RefusedRequestError(403, desk.exhausted, kind="budget_exhausted")
        return path

    def _has_token(self, token: bytes) -> bool:
        found = False
        for name, value in self.headers:
            shown = value
            if name == b"authorization":
                scheme, _, shown = value.partition(b" ")
                if scheme.lower() != b"bearer":
                    continue
            elif name != b"x-api-key":
                continue
            found |= hmac.compare_digest(shown.strip(), token)
        return found

    async def _read(self, desk: Desk, receive: Receive) -> None:
        body = bytearray()
        more = True
        while more:
            if desk.is_full:
                raise RefusedRequestError(429, "too many requests at once to this relay")
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            piece: bytes = message.get("body", b"")
            body += piece
            self.held_bytes += len(piece)
            desk.hold(len(piece))
            if len(body) > desk.request_limit:
                raise RefusedRequestError(
                    413, f"the request is larger than the {desk.request_limit} bytes that may be"
                )
            more = message.get("more_body", False)
        self.body = bytes(body)

    def release(self, desk: Desk) -> None:
        """Let the body go."""
        self.body = b""
        desk.hold(-self.held_bytes)
        self.held_bytes = 0

    def _check_model(self, desk: Desk) -> None:
        encodings = [value for name, value in self.headers if name == b"content-encoding"]
        if any(encoding != b"identity" for encoding in encodings):
            raise RefusedRequestError(400, "this relay reads no requests that are compressed")
        try:
            asked = _read_request(self.body)
        except (ValueError, RecursionError) as error:
            raise RefusedRequestError(400, f"the request is no JSON object: {error}") from None
        model = asked.get("model")
        if any(key != "model" and key.casefold() == "model" for key in asked):
            # Some readers take no notice of case, and then the last of the two.
            raise RefusedRequestError(400, "the request names its model twice")
        self.model = model[:200] if isinstance(model, str) else ""
        if not isinstance(model, str) or not desk.provider.may_ask(model):
            raise RefusedRequestError(
                403,
                f"this attempt may ask {desk.provider.model}, not {str(model)[:200]}; set the "
                "program's model for side tasks to the same one",
            )


def _read_request(body: bytes) -> dict[str, Any]:
    """The request; a key that is there twice is refused, for two readers read it differently.

    Raises:
        ValueError: no JSON, no object, or such a key.
    """
    # Only then can `model` be there twice; to look at each key takes half as long again.
    careful = body.count(b'"model"') != 1 or b"\\u00" in body
    asked = json.loads(body, object_pairs_hook=_each_once if careful else None)
    if not isinstance(asked, dict):
        raise ValueError("it is another value")
    return asked


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found
