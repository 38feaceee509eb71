"""Downloads that can be cut off: taken up again, retried where that helps, and told about.

With `requests`, which the package needs anyway, and the two requests that a hub documents
(`hub`), instead of the huggingface_hub library: that brings some fifteen packages more, among
them a compiled transport, and its cache is not by content. What is asked of a server here is
what RFC 9110 says of Range, If-Range and Retry-After, and what GitHub and others say of their
limits by X-RateLimit-Remaining and X-RateLimit-Reset.
"""

from __future__ import annotations

import email.utils
import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from ..errors import AssetError, UnreachableError
from .progress import Progress, check_room

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import requests

#: A cut connection loses what of a chunk has come.
_CHUNK_BYTES = 1 << 16
_CONNECT_S, _SILENCE_S = 20.0, 60.0
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
#: What a server may ask us to wait, and how often in a row nothing may come of a request.
_LONGEST_WAIT_S = 120.0
#: Where a limit is reached and nothing says for how long; GitHub asks for a minute at least.
_LIMIT_WAIT_S = 60.0
#: How much of a refusal is read for the server's own words.
_WORDS_BYTES = 20_000
#: After nothing came, where the server does not say how long to wait; twice as long each time.
_FIRST_WAIT_S = 1.0
_TRIES = 6


class Refused(Exception):  # noqa: N818  # an answer, and no error of ours
    """A server does not give what was asked for, and asking again does not help."""

    def __init__(self, status: int, words: str) -> None:
        """`words` are the server's own, where it says more."""
        super().__init__(status, words)
        self.status = status
        self.words = words


class Client:
    """What fetches, with the proxy and the certificates of this user's environment."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        setting: str = "HF_ENDPOINT",
        longest_wait_s: float = _LONGEST_WAIT_S,
    ) -> None:
        """A client; nothing is opened before something is asked.

        Args:
            say: is told why something is waited for.
            token: is sent to the server that is asked, and to none that it leads to.
            headers: are sent with every request.
            setting: by which a user chooses the server, for advice.
            longest_wait_s: what a server may ask us to wait.
        """
        self._say = say
        self._token = token
        self._headers = dict(headers or {})
        self._setting = setting
        self._longest_wait_s = longest_wait_s
        self._opened: requests.Session | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    def json(self, url: str) -> Any:
        """The JSON at an address.

        Raises:
            Refused: the server says no.
            AssetError: it cannot be reached, stays busy, or answers something else.
        """
        import requests

        def read() -> Any:
            with self._ask(url, {}) as response:
                if response.status_code != 200:
                    raise self._again(response)
                try:
                    return response.json()
                except ValueError as error:
                    if "json" in response.headers.get("Content-Type", ""):
                        raise _Again("its answer ends within the JSON") from error
                    raise AssetError(
                        f"{_host(url)} answers with something else than JSON",
                        advice=f"check {self._setting}, and whether a proxy asks for a login",
                    ) from error
                except requests.RequestException as error:
                    raise _Again(f"the connection was cut ({_kind(error)})") from error

        return self._persist(url, read)

    def size_bytes(self, url: str) -> int | None:
        """How large the file at an address is, where the server says so; it is not fetched.

        Raises:
            Refused: the server says no.
            AssetError: it cannot be reached, or stays busy.
        """

        def read() -> int | None:
            with self._ask(url, {}) as response:  # not every server knows HEAD
                if response.status_code != 200:
                    raise self._again(response)
                return _length(response)

        found = self._persist(url, read)
        return None if found is None else int(found)

    def download(
        self, url: str, partial: Path, progress: Progress, *, size_bytes: int | None = None
    ) -> str:
        """Fetch what is at an address to the file `partial`, going on where an earlier try ended.

        Returns its content type.

        Raises:
            Refused: the server says no.
            AssetError: it cannot be reached, stays busy, or there is no room.
            OSError: the file cannot be written.
        """
        before = progress.done_bytes  # of the files that came before this one

        def read() -> str:
            return self._read(url, partial, progress, before, size_bytes)

        return str(self._persist(url, read))

    def _read(
        self, url: str, partial: Path, progress: Progress, before: int, size_bytes: int | None
    ) -> str:
        import requests

        note = partial.with_name(f"{partial.name}.json")
        have, validator = _resumable(partial, note, url)
        if size_bytes is not None and have > size_bytes:
            have = 0
        headers = {"Range": f"bytes={have}-", "If-Range": validator} if have else {}
        with self._ask(url, headers) as response:
            kind = response.headers.get("Content-Type", "")
            if response.status_code == 416 and have == size_bytes:
                return kind  # all of it was there
            if response.status_code == 416:
                partial.unlink(missing_ok=True)
                raise _Again("it does not have the rest of the file", wait_s=0.0)
            if response.status_code not in (200, 206):
                raise self._again(response)
            if response.status_code == 206 and _start(response) != have:
                partial.unlink(missing_ok=True)
                raise _Again("it gave another part of the file than asked for", wait_s=0.0)
            if response.status_code == 200:
                have = 0
                partial.unlink(missing_ok=True)
                _note(note, url, response)
            coming = _length(response)
            total = have + coming if coming is not None else size_bytes
            if size_bytes is not None and total != size_bytes:
                web_page = ", and a web page" if "text/html" in kind else ""
                raise AssetError(
                    f"{_host(url)} gives {total} bytes{web_page} instead of the file of "
                    f"{size_bytes} bytes",
                    advice="check whether a proxy asks for a login, or changes what it passes on",
                )
            check_room(partial.parent, (total or have) - have)
            progress.total_bytes = progress.total_bytes or total
            progress.at(before + have)
            got, cut = have, "the connection was cut"
            with partial.open("ab") as stream:
                try:
                    for chunk in response.iter_content(_CHUNK_BYTES):
                        stream.write(chunk)
                        got += len(chunk)
                        progress.add(len(chunk))
                        if size_bytes is not None and got > size_bytes:
                            raise AssetError(f"{_host(url)} gives more than {size_bytes} bytes")
                except requests.RequestException as error:
                    raise _Again(f"{cut} ({_kind(error)})", reached_bytes=got) from error
        if total is not None and got < total:
            raise _Again(cut, reached_bytes=got)
        return kind

    def _ask(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        import requests

        if self._opened is None:
            self._opened = requests.Session()
            # What is stored is what is sent, so that Range and sizes mean the same.
            self._opened.headers["Accept-Encoding"] = "identity"
            self._opened.headers.update(self._headers)
        token = self._token

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            return request

        try:
            return self._opened.get(
                url,
                headers=dict(headers),
                auth=sign,
                stream=True,
                timeout=(_CONNECT_S, _SILENCE_S),
            )
        except requests.RequestException as error:
            why = f"it cannot be reached ({_kind(error)})"
            raise _Again(why, weight=3, unreached=True) from error

    def _again(self, response: requests.Response) -> _Again:
        """For an answer that is worth another try.

        Raises:
            Refused: it is not.
            AssetError: it would be, much later.
        """
        status, words = response.status_code, _words(response)
        wait_s = _retry_after(response, self._longest_wait_s)
        if status in (403, 429) and wait_s is None:
            wait_s = _until_reset(response)
            if wait_s is None and "rate limit" in words.lower():
                wait_s = _LIMIT_WAIT_S
            if wait_s is not None and wait_s > self._longest_wait_s:
                raise AssetError(
                    f"{_host(response.url)} gives no more answers for {wait_s / 60:.0f} minutes: "
                    "its limit of requests is used up",
                    advice="give the same command again then: what has come is kept",
                )
        if status in _BUSY or (status == 403 and wait_s is not None):
            return _Again(f"it answers {status} {response.reason}", wait_s=wait_s)
        raise Refused(status, words)

    def _persist(self, url: str, read: Callable[[], Any]) -> Any:
        """Try until it is there, the server says no, or nothing has come of several tries."""
        idle = best_bytes = 0
        while True:
            try:
                return read()
            except _Again as again:
                idle = 0 if again.reached_bytes > best_bytes else idle + again.weight
                best_bytes = max(best_bytes, again.reached_bytes)
                if idle >= _TRIES:
                    said = f"{_host(url)}: {again.why}, however often it was tried"
                    advice = (
                        "check the network and the proxy, or try again later: what has come "
                        "is kept, and the same command goes on"
                    )
                    if again.unreached:
                        raise UnreachableError(said, host=_host(url), advice=advice) from again
                    raise AssetError(said, advice=advice) from again
                wait_s = (
                    min(_FIRST_WAIT_S * 2.0 ** (idle - 1), 30.0)
                    if again.wait_s is None
                    else again.wait_s
                )
                if wait_s >= 1:
                    self._say(f"{_host(url)}: {again.why}; next try in {wait_s:.0f} s")
                time.sleep(wait_s)


class _Again(Exception):  # noqa: N818  # asks for a further try
    def __init__(
        self,
        why: str,
        *,
        wait_s: float | None = None,
        reached_bytes: int = 0,
        weight: int = 1,
        unreached: bool = False,
    ) -> None:
        super().__init__(why)
        self.why = why
        self.wait_s = wait_s  #: as the server asks; None: longer each time
        self.reached_bytes = reached_bytes  #: how much of the file is there
        self.unreached = unreached  #: there was no answer at all
        self.weight = weight  #: how much it counts: who is not there rarely comes back soon


def _words(response: requests.Response) -> str:
    """What a server says of its refusal: in headers (a hub), in JSON (GitHub), or its reason."""
    said = response.headers.get("X-Error-Message", "")
    if not said and "json" in response.headers.get("Content-Type", ""):
        # Whatever is wrong with the body, the status stands.
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            body = json.loads(next(response.iter_content(_WORDS_BYTES), b""))
            errors = [str(error.get("message") or "") for error in body.get("errors") or ()]
            said = "; ".join(part for part in (body.get("message"), *errors) if part)
    words = said or response.reason or ""
    code = response.headers.get("X-Error-Code", "")
    return f"{words} ({code})" if code else words


def _until_reset(response: requests.Response) -> float | None:
    """Seconds until a server answers again that says that its limit is used up."""
    reset = response.headers.get("X-RateLimit-Reset", "")
    if response.headers.get("X-RateLimit-Remaining", "") != "0" or not reset.isdecimal():
        return None
    now = time.time()
    with suppress(ValueError, TypeError):  # the server's own clock, where it shows it
        now = email.utils.parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    return max(int(reset) - now, 0.0) + 1.0


def _retry_after(response: requests.Response, longest_wait_s: float) -> float | None:
    said = response.headers.get("Retry-After", "").strip()
    if not said:
        return None
    wait_s = None
    if said.isdecimal():
        wait_s = float(said)
    else:
        with suppress(ValueError, TypeError):  # of a date without a zone
            wait_s = (email.utils.parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    return None if wait_s is None else min(max(wait_s, 0.0), longest_wait_s)


def _resumable(partial: Path, note: Path, url: str) -> tuple[int, str]:
    """How much of the file is there, and by what the server knows that it is still the same."""
    try:
        have = partial.stat().st_size
        said = json.loads(note.read_bytes())
        validator = said["validator"] if said["url"] == url else ""
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""
    return (have, str(validator)) if validator else (0, "")


def _note(note: Path, url: str, response: requests.Response) -> None:
    tag = response.headers.get("ETag", "")
    # A weak tag promises no equal bytes, so a server would not resume by it.
    validator = response.headers.get("Last-Modified", "") if tag.startswith("W/") else tag
    note.write_text(
        json.dumps({"url": url, "validator": validator or response.headers.get("Last-Modified")})
    )


def _start(response: requests.Response) -> int | None:
    said = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(said) if said.isdecimal() else None


def _length(response: requests.Response) -> int | None:
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isdecimal() else None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _kind(error: Exception) -> str:
    """What sort of failure; its own words may hold signed addresses."""
    return type(error).__name__
