"""Which headers pass the relay, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .keys import Key
    from .provider import Provider
    from .redaction import Redactor

#: Of one connection, not of the message (RFC 9110, 7.6.1).
_OF_CONNECTION = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
#: What the relay says itself, and every way in which a program could show a key of its own.
_NOT_TO_PROVIDER = _OF_CONNECTION | {
    b"accept-encoding",
    b"api-key",
    b"authorization",
    b"content-length",
    b"cookie",
    b"expect",
    b"forwarded",
    b"host",
    b"openai-organization",
    b"openai-project",
    b"x-api-key",
    b"x-goog-api-key",
    b"x-http-method",
    b"x-http-method-override",
    b"x-original-url",
    b"x-rewrite-url",
}
#: Whoever is asked for by these is no business of the agent's.
_FORWARDED = b"x-forwarded-"
#: Answers are framed anew; cookies, other addresses and the account are not the agent's.
_NOT_TO_AGENT = _OF_CONNECTION | {
    b"alt-svc",
    b"anthropic-organization-id",
    b"content-length",
    b"openai-organization",
    b"openai-project",
    b"set-cookie",
    b"set-cookie2",
}

Headers = list[tuple[bytes, bytes]]


def for_provider(headers: Iterable[tuple[bytes, bytes]], provider: Provider, key: Key) -> Headers:
    """The agent's headers as they go on, with the key."""
    given = [(name.lower(), value) for name, value in headers]
    dropped = _NOT_TO_PROVIDER | _named_by_connection(given)
    name, value = provider.key_header(key)
    return [
        *(
            (name, value)
            for name, value in given
            if name not in dropped and not name.startswith(_FORWARDED)
        ),
        # An answer that is not compressed can be counted, and a stream comes without delay.
        (b"accept-encoding", b"identity"),
        (name.encode(), value.encode()),
    ]


def for_agent(
    headers: Iterable[tuple[bytes, bytes]], redactor: Redactor, *, encoded: bool
) -> Headers:
    """The provider's headers as they are shown; `encoded`, where the body stays as it is."""
    given = [(name.lower(), value) for name, value in headers]
    dropped = _NOT_TO_AGENT | _named_by_connection(given)
    if not encoded:
        dropped |= {b"content-encoding"}
    return [
        (name, value)
        for name, value in given
        if name not in dropped and not redactor.holds_secret(value)
    ]


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    """What the header `connection` says to be of the connection too."""
    values = (value for name, value in headers if name == b"connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(b","))
