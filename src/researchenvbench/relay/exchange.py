"""One request of an agent's program: passed on, answered, counted, kept."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..model_use import Call
from .asking import Asking, NoAnswerError, read_error
from .decoding import Decoder
from .headers import for_agent, for_provider
from .incoming import GoneError, Incoming, RefusedRequestError
from .usage import Answer, error_of_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from ..model_use import CallEnd
    from .desk import Desk
    from .headers import Headers
    from .incoming import Receive, Scope, Send
    from .provider import ApiPath
    from .record import Kept

#: How far the files may be behind before a stream waits for them.
_BEHIND_BYTES = 4 << 20
#: Of an error, when it is unpacked.
_ERROR_BYTES = 4 << 20
#: By then the provider has the request, and what writes it down is in nobody's way.
_KEEP_AFTER_S = 0.05


@dataclass
class _Told:
    """What is known of the answer so far, besides what it tells itself."""

    status: int | None = None
    streamed: bool = False
    why: str = ""
    error_type: str = ""
    first_byte_s: float | None = None
    answer_bytes: int = 0


class Exchange:
    """One request, from its head to its record."""

    def __init__(self, desk: Desk, scope: Scope, receive: Receive, send: Send) -> None:
        self._desk = desk
        self._receive = receive
        self._send = send
        self._asked = Incoming.of(scope)
        self._begin()
        self._writes = False
        self._number = 0
        self._told = _Told()
        self._asking: Asking | None = None
        self._answer: Answer | None = None
        self._decoder: Decoder | None = None
        self._kept: Kept | None = None
        self._request_kept = False
        self._concluded = False

    def _begin(self) -> None:
        self._began = time.monotonic()
        self._date = datetime.now(UTC).isoformat(timespec="milliseconds")

    @property
    def waited(self) -> tuple[float, float]:
        """From when to when, by the monotonic clock, an answer waited for the provider."""
        waited_s = self._asking.waited_s if self._asking is not None and self._writes else 0.0
        return self._began, self._began + waited_s

    async def run(self) -> None:
        """Answer the request."""
        self._desk.enter(self)
        try:
            path = await self._asked.check(self._desk, self._receive)
        except RefusedRequestError as refusal:
            await self._refuse(refusal)
        except GoneError:
            pass
        else:
            await self._attend(path)
        finally:
            self._asked.release(self._desk)
            self._desk.leave(self)

    async def _attend(self, path: ApiPath) -> None:
        """Pass the request on, for as long as somebody waits for the answer."""
        # Now that it is whole: the provider makes no program wait that is slow to ask.
        self._begin()
        self._writes = path.writes
        self._number = self._desk.record.next_number()
        keeping = asyncio.get_running_loop().call_later(_KEEP_AFTER_S, self._keep_request)
        leaving = asyncio.create_task(self._receive_leave())
        work = asyncio.create_task(self._forward(path))
        try:
            await asyncio.wait({leaving, work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Either the program is gone, or the relay ends: the provider need write no more.
            # All is written down before anything is awaited, for who ends cancels twice.
            failure = work.exception() if work.done() and not work.cancelled() else None
            if failure is not None:
                self._desk.record.note(f"call {self._number}: the relay failed: {failure!r}")
                self._conclude("cut", why="the relay itself failed")
            # Many programs leave when they have read the last event, before the stream's end.
            self._conclude(self._end_or("left"), why="the agent's program went away")
            keeping.cancel()
            self._keep_request()
            leaving.cancel()
            work.cancel()
            await asyncio.gather(leaving, work, return_exceptions=True)
        if failure is not None:
            raise failure

    def _keep_request(self) -> None:
        """Have the request written, once."""
        if self._asked.body and not self._request_kept:
            self._request_kept = True
            kept = self._desk.record.keep(f"{self._number:04d}.request.json")
            kept.write(self._asked.body)
            kept.close()

    async def _receive_leave(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _refuse(self, refusal: RefusedRequestError) -> None:
        self._number = self._desk.record.next_number()
        self._told = _Told(
            status=refusal.status,
            why=refusal.message,
            error_type=refusal.kind,
        )
        self._conclude("refused")
        body = self._desk.provider.error(refusal.status, refusal.message, refusal.kind)
        headers = [(b"x-should-retry", b"true" if refusal.status == 429 else b"false")]
        await self._send_whole(refusal.status, json.dumps(body).encode(), headers)

    async def _forward(self, path: ApiPath) -> None:
        desk, asked = self._desk, self._asked
        self._asking = Asking(desk.client, desk.patience)
        headers = for_provider(asked.headers, desk.provider, desk.key)
        if asked.method == "POST":
            headers.append((b"content-length", str(len(asked.body)).encode()))
        request = desk.client.build_request(
            asked.method,
            desk.provider.target(path, asked.query),
            headers=headers,
            content=_Body(asked) if asked.method == "POST" else None,
        )
        try:
            response = await self._asking.ask(request)
        except NoAnswerError as error:
            self._conclude("unreachable", why=str(error))
            told = desk.provider.error(504, f"the relay got no answer: {error}")
            text = desk.redactor.clean(json.dumps(told).encode())
            await self._send_whole(504, text, [])
            return
        self._told.status = response.status_code
        self._kept = desk.record.keep(f"{self._number:04d}.answer")
        try:
            if response.is_success:
                await self._pass_answer(response)
            else:
                await self._pass_error(response)
        finally:
            await response.aclose()

    async def _pass_error(self, response: httpx.Response) -> None:
        """An error is small: it is read as a whole, so that it can be cleaned."""
        import httpx

        try:
            raw = await read_error(response)
        except httpx.TransportError as error:
            self._conclude("cut", why=f"the error broke off: {type(error).__name__}")
            return  # the server closes the connection
        self._note_passing(raw)
        encoding = response.headers.get("content-encoding", "")
        decoder = Decoder(encoding)
        body = decoder.feed(raw, most_bytes=_ERROR_BYTES)
        if decoder.failed:
            message = f"an error that cannot be shown (encoded as {encoding})"
            told = self._desk.provider.error(response.status_code, message)
            body = json.dumps(told).encode()
        body = self._desk.redactor.clean(body)
        self._told.error_type, self._told.why = error_of_body(body)
        if response.is_redirect:
            location = response.headers.get("location", "")[:200]
            self._told.why = f"the provider sends to another address: {location}"
        if self._kept is not None:
            self._kept.write(body)
        self._conclude("error")
        headers = for_agent(response.headers.raw, self._desk.redactor, encoded=False)
        await self._send_whole(response.status_code, body, headers)

    async def _pass_answer(self, response: httpx.Response) -> None:
        import httpx

        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._told.streamed = kind == "text/event-stream"
        if self._writes:
            self._answer = Answer(self._desk.provider.wire, streamed=self._told.streamed)
        self._decoder = Decoder(response.headers.get("content-encoding", ""))
        headers = for_agent(response.headers.raw, self._desk.redactor, encoded=True)
        start = {"status": response.status_code, "headers": headers}
        await self._send({"type": "http.response.start", **start})
        try:
            async for piece in response.aiter_raw():
                self._note_passing(piece)
                self._count(piece)
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                while self._kept is not None and self._kept.behind_bytes > _BEHIND_BYTES:
                    await asyncio.sleep(0.002)
        except httpx.TransportError as error:
            said = str(error) or type(error).__name__
            why = f"the provider's answer broke off: {said}"
            self._conclude(self._end_or("cut"), why=why)
            return  # without an end: the server closes the connection
        why = "the provider's answer is none of its protocol"
        end: CallEnd = "complete"
        if self._answer is not None:
            end = self._end_or("cut" if self._told.streamed else "error")
        if end == "cut":
            why = "the provider's stream ended before its last event"
        # Before the last byte: who has the whole answer finds it counted.
        self._conclude(end, why=why)
        if end != "cut":
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _end_or(self, end: CallEnd) -> CallEnd:
        """How the answer itself says that it ended; else `end`."""
        if self._answer is None:
            return end
        self._answer.finish()
        if self._answer.failed:
            return "error"
        return "complete" if self._answer.ended else end

    def _note_passing(self, piece: bytes) -> None:
        if self._told.first_byte_s is None:
            self._told.first_byte_s = round(time.monotonic() - self._began, 4)
        self._told.answer_bytes += len(piece)
        self._desk.passed()

    def _count(self, piece: bytes) -> None:
        text = self._decoder.feed(piece) if self._decoder is not None else piece
        if self._kept is not None:
            self._kept.write(text)
        if self._answer is not None:
            self._answer.feed(text)

    async def _send_whole(self, status: int, body: bytes, headers: Headers) -> None:
        if not any(name == b"content-type" for name, _ in headers):
            headers = [*headers, (b"content-type", b"application/json")]
        headers = [*headers, (b"content-length", str(len(body)).encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def _conclude(self, end: CallEnd, *, why: str = "") -> None:
        """Write the call down, once; `why` holds for what did not end well."""
        if self._concluded:
            return
        self._concluded = True
        if self._kept is not None:
            self._kept.close()
        asked, told, answer = self._asked, self._told, self._answer
        tokens = answer.tokens if answer is not None else None
        why = (answer.why if answer is not None else "") or told.why or why
        self._desk.ended(
            Call(
                number=self._number,
                began=self._date,
                seconds=round(time.monotonic() - self._began, 4),
                first_byte_s=told.first_byte_s,
                waited_s=round(self._asking.waited_s, 3) if self._asking else 0.0,
                tries=self._asking.tries if self._asking else 0,
                method=asked.method,
                writes=self._writes,
                path=asked.path[:200],
                model=asked.model,
                answered_by=answer.answered_by if answer else "",
                answer=answer.answer_id if answer else "",
                status=told.status,
                streamed=told.streamed,
                end=end,
                why="" if end == "complete" else why,
                error_type=(answer.error_type if answer else "") or told.error_type,
                stop_reason=answer.stop_reason if answer else "",
                tokens=tokens,
                cost_usd=self._desk.cost(asked.model, tokens),
                request_bytes=asked.held_bytes,
                answer_bytes=told.answer_bytes,
            ),
        )


class _Body:
    """The body of a request, as often as it is sent; gone when the call has ended.

    httpx's requests and answers hold each other until a late collection of garbage.
    """

    def __init__(self, asked: Incoming) -> None:
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._asked.body
