"""Sends one HTTP request and prints the answer: `http_request.py FILE`, stand-alone.

The file holds the request as JSON: url, method, headers, body, time_limit_s, limit_bytes.

Standard library only. It runs inside a stage's box, which may have a network of its own,
and talks to this host alone: no proxy, and a redirect is an answer like any other, never
followed. What is printed is one line of JSON with `status`, `headers`, `body` (base64) and
`ending`, which says how a body ended that was not read to its end; or with `error` alone.
"""

import base64
import http.client
import json
import signal
import sys
import urllib.parse
from pathlib import Path
from typing import Any

_HOSTS = {"127.0.0.1", "localhost", "::1"}


class _OutOfTimeError(Exception):
    """The time limit passed."""


def _ring(*_: object) -> None:
    raise _OutOfTimeError


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    try:
        address = urllib.parse.urlsplit(request["url"])
        port = address.port or 80
    except ValueError as error:
        return {"error": f"not an address: {error}"}
    if address.scheme != "http" or address.hostname not in _HOSTS or address.username:
        return {"error": "not an http address of this host"}
    path = address.path or "/"
    if address.query:
        path += f"?{address.query}"
    # One limit for all of it: a server that sends a byte now and then gets no more time.
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, request["time_limit_s"])
    connection = http.client.HTTPConnection(address.hostname, port)
    try:
        body = request["body"].encode() if request["body"] is not None else None
        connection.request(request["method"], path, body, request["headers"])
        answer = connection.getresponse()
    except _OutOfTimeError:
        return {"error": f"no answer within {request['time_limit_s']:g} s"}
    except ConnectionRefusedError:
        return {"error": f"nothing listens on port {port}"}
    except (OSError, http.client.HTTPException, ValueError, UnicodeError) as error:
        return {"error": f"no HTTP answer: {error or type(error).__name__}"}
    body, ending = _read(answer, request["limit_bytes"])
    signal.setitimer(signal.ITIMER_REAL, 0)
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return {
        "status": answer.status,
        "headers": headers,
        "body": base64.b64encode(body).decode(),
        "ending": ending,
    }


def _read(answer: http.client.HTTPResponse, limit_bytes: int) -> tuple[bytes, str]:
    body = bytearray()
    try:
        while len(body) < limit_bytes:
            piece = answer.read1(min(65536, limit_bytes - len(body)))
            if not piece:
                # A body that is shorter than its announced length ends like any other here.
                cut = answer.length not in (None, 0)
                return bytes(body), "cut off" if cut else ""
            body += piece
    except _OutOfTimeError:
        return bytes(body), "still open"
    except http.client.IncompleteRead as error:
        return bytes(body + error.partial), "cut off"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return bytes(body), f"cut off ({error or type(error).__name__})"
    return bytes(body), "too long"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(json.loads(Path(sys.argv[1]).read_bytes()))))
