"""The provider of a model: its address, its protocol, which of its paths are passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from ..errors import RebError
from ..model_use import Wire
from ..schema import suggest

if TYPE_CHECKING:
    from .keys import Key


@dataclass(frozen=True)
class ApiPath:
    """A path that is passed on."""

    method: str
    path: str
    names_model: bool = True  #: its body says which model is asked
    writes: bool = True  #: the model answers: there is usage to count


_MODELS = ApiPath("GET", "/v1/models", names_model=False, writes=False)
_PATHS: dict[Wire, tuple[ApiPath, ...]] = {
    "anthropic-messages": (
        ApiPath("POST", "/v1/messages"),
        ApiPath("POST", "/v1/messages/count_tokens", writes=False),
        _MODELS,
    ),
    "openai-responses": (ApiPath("POST", "/v1/responses"), _MODELS),
    "openai-chat": (ApiPath("POST", "/v1/chat/completions"), _MODELS),
}


@dataclass(frozen=True)
class Provider:
    """Who answers, in which protocol, with which model.

    `upstream` is the base address as the makers' own programs take it: for Anthropic's
    protocol without a version (https://api.anthropic.com), for OpenAI's with it
    (https://api.openai.com/v1).

    Raises:
        RebError: no such protocol, or an address that cannot be used.
    """

    wire: Wire
    upstream: str
    model: str

    def __post_init__(self) -> None:
        if self.wire not in get_args(Wire):
            known = get_args(Wire)
            raise RebError(
                f"no such protocol: {self.wire!r}{suggest(self.wire, known)}",
                advice=f"known are {', '.join(known)}",
            )
        if not self.model:
            raise RebError("no model is named", advice="say which one the agent is to use")
        try:
            parts = urlsplit(self.upstream)
            _ = parts.port
        except ValueError as error:
            raise RebError(f"not an address of a provider: {self.upstream!r}: {error}") from error
        if parts.username or parts.password:
            # The address is written into records, and shown.
            raise RebError(
                f"the address of the provider at {parts.hostname} has credentials in it",
                advice="leave them out, and name the key: env:NAME, file:PATH or keyring:…",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RebError(
                f"not an address of a provider: {self.upstream!r}",
                advice="write it as https://HOST, with /v1 for the protocols of OpenAI",
            )
        if self.wire == "anthropic-messages" and parts.path.rstrip("/").endswith("/v1"):
            raise RebError(
                f"the base address of a provider of Anthropic's protocol ends without /v1: "
                f"{self.upstream!r}",
                advice="leave it out; the relay adds it",
            )
        if parts.query or parts.fragment:
            raise RebError(
                f"the address of a provider may have no query: {self.upstream!r}",
                advice="leave out what follows ? or #",
            )

    def path(self, method: str, path: str) -> ApiPath | None:
        """The path that is asked for, if it is one of this protocol."""
        for known in _PATHS[self.wire]:
            if (known.method, known.path) == (method, path):
                return known
        return None

    def target(self, path: ApiPath, query: str) -> str:
        """Where a request goes on to."""
        rest = path.path
        if self.wire != "anthropic-messages":
            rest = rest.removeprefix("/v1")
        return self.upstream.rstrip("/") + rest + (f"?{query}" if query else "")

    def key_header(self, key: Key) -> tuple[str, str]:
        """The header that carries the key."""
        if self.wire == "anthropic-messages":
            return "x-api-key", key.reveal()
        return "authorization", f"Bearer {key.reveal()}"

    def may_ask(self, model: str) -> bool:
        """Whether a program may ask for this model."""
        return model == self.model

    def error(self, status: int, message: str, kind: str = "") -> dict[str, Any]:
        """An error of the relay itself, in the protocol's own form."""
        kind = kind or _KINDS.get(status, "api_error")
        if self.wire == "anthropic-messages":
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


#: The types of errors in Anthropic's reference; programs of OpenAI go by the status.
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


@dataclass(frozen=True)
class Budget:
    """What a build may use of a model; null is without a limit.

    Raises:
        RebError: a limit that is not above zero.
    """

    tokens: int | None = None
    usd: float | None = None

    def __post_init__(self) -> None:
        for what, limit in (("tokens", self.tokens), ("dollars", self.usd)):
            if limit is not None and not limit > 0:
                raise RebError(
                    f"a budget of {limit} {what} allows nothing",
                    advice="give a number above zero, or leave it out",
                )

    def used_up(self, tokens: int, usd: float | None) -> str:
        """Which of the limits is reached, in words; empty where none is."""
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens} tokens is used up: {tokens} were used"
        if self.usd is not None and usd is not None and usd >= self.usd:
            return f"the budget of {self.usd:g} dollars is used up: {usd:.4f} were spent"
        return ""
