"""Asks the provider, and asks again while it has a fault that passes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from .patience import LASTING, PASSING
from .usage import error_of_body

if TYPE_CHECKING:
    import httpx

    from .patience import Patience

#: Of an answer that is an error.
ERROR_LIMIT = 4 << 20


class NoAnswerError(Exception):
    """The provider could not be reached, or said nothing."""


class Asking:
    """One request to the provider, with its tries."""

    def __init__(self, client: httpx.AsyncClient, patience: Patience) -> None:
        self._client = client
        self._patience = patience
        self._began = time.monotonic()
        self._lost_s = 0.0
        self._sleeps = False
        self.tries = 0

    @property
    def waited_s(self) -> float:
        """Lost to faults, from the first try to the beginning of the present one."""
        return time.monotonic() - self._began if self._sleeps else self._lost_s

    async def ask(self, request: httpx.Request) -> httpx.Response:
        """The answer: any that is no passing fault, or the last of those, with its body read.

        Raises:
            NoAnswerError: there was none, in words.
        """
        import httpx

        while True:
            self.tries += 1
            response: httpx.Response | None = None
            why = ""
            try:
                response = await self._client.send(request, stream=True)
                if response.status_code not in PASSING:
                    break
                await read_error(response)
            except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
                # Of a body that broke off the head is still an answer, but its body is none.
                response = None
                why = _in_words(error, request)
                if _is_lasting(error):
                    raise NoAnswerError(why) from error
            elapsed_s = time.monotonic() - self._began
            self._lost_s = elapsed_s
            if response is not None and _says_no_more(response):
                break
            wait_s = self._patience.wait_s(
                self.tries, elapsed_s, response.headers if response is not None else None
            )
            if wait_s is None:
                if response is None:
                    raise NoAnswerError(why)
                break
            self._sleeps = True
            try:
                await asyncio.sleep(wait_s)
            finally:
                self._lost_s = time.monotonic() - self._began
                self._sleeps = False
        return response


async def read_error(response: httpx.Response) -> bytes:
    """The body of an answer that is an error, as it came, up to a limit."""
    body = response.extensions.get("reb_body")
    if body is None:
        body = b""
        try:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > ERROR_LIMIT:
                    break
        finally:
            await response.aclose()
        response.extensions["reb_body"] = body
    return bytes(body)


def _says_no_more(response: httpx.Response) -> bool:
    """Whether the fault is of those that no waiting mends."""
    kind, _ = error_of_body(response.extensions["reb_body"])
    return kind in LASTING


def _is_lasting(error: Exception) -> bool:
    import httpx

    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
        return True
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _in_words(error: Exception, request: httpx.Request) -> str:
    import httpx

    where = request.url.host
    said = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection to {where} in time"
    if isinstance(error, httpx.TimeoutException):
        return f"{where} did not answer in time"
    if isinstance(error, httpx.ProxyError):
        return f"the proxy of this host refuses {where}: {said}"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {where}: {said}"
    return f"{where} gave no answer: {said}"
