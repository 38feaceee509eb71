"""Asks, from inside a stage's box, what a service answers and which files are there.

A stage may have a network of its own, so its services cannot be reached from here. The
probes are stand-alone scripts that the harness's own interpreter runs in the box: the judged
interpreter is not asked whether the judged code works. They print what they learned to a log
on the harness's side.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attempt import EvidenceResult, Owner, Verdict
from ..errors import SandboxError
from ..sandbox import Command
from ..task import fill
from .evidence_words import describe
from .readers import contained
from .readers.wording import SEEN_LIMIT, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evidence import HttpEvidence
    from ..sandbox import StageBox

_PROBES = Path(__file__).parent / "probes"
_BODY_LIMIT_BYTES = 10_000_000
#: For the probe's own start, beyond what the request may take.
_START_S = 20.0
_SHOWN = 160


def judge_http(
    entry: HttpEvidence, box: StageBox, values: Mapping[str, str], folder: Path
) -> EvidenceResult:
    """Send the request and judge the answer."""

    def result(verdict: Verdict, seen: str, owner: Owner | None = None) -> EvidenceResult:
        words = shorten(seen, SEEN_LIMIT)
        return EvidenceResult(entry=describe(entry), verdict=verdict, seen=words, owner=owner)

    request = {
        "url": fill(entry.url, dict(values)),
        "method": entry.method,
        "headers": entry.headers,
        "body": entry.body,
        "time_limit_s": entry.time_limit_s,
        "limit_bytes": _BODY_LIMIT_BYTES,
    }
    # By a file: a body may be longer than an argument.
    inside = box.layout.tools / "http_request.json"
    box.put(inside, json.dumps(request).encode())
    answer, trouble = _probe(
        "http_request.py", str(inside), box, folder, entry.time_limit_s + _START_S
    )
    if answer is None:
        return result(Verdict.INCONCLUSIVE, f"the request was not sent: {trouble}", Owner.HOST)
    if "error" in answer:
        return result(Verdict.FAILED, str(answer["error"]))
    try:
        status, ending = int(answer["status"]), str(answer["ending"])
        body = base64.b64decode(answer["body"], validate=True)
        headers = dict(answer["headers"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        seen = f"the probe's own answer is damaged: {error}"
        return result(Verdict.INCONCLUSIVE, seen, Owner.HOST)
    text = body.decode("utf-8", "replace")
    seen = f"status {status}, {len(body)} bytes: {shorten(text, _SHOWN)}"
    if "location" in headers:
        seen += f"; it points to {shorten(str(headers['location']))}"
    if ending:
        seen += f"; the body was {ending}"
    if status != entry.status or ending.startswith("cut off"):
        return result(Verdict.FAILED, seen)
    if entry.pattern is not None:
        try:
            found = contained.search_text(text, entry.pattern)
        except contained.NoAnswer as error:
            seen = f"the search of the body {error}; {seen}"
            return result(Verdict.INCONCLUSIVE, seen, Owner.TASK)
        if not found:
            return result(Verdict.FAILED, f"the body does not match; {seen}")
    return result(Verdict.PASSED, seen)


def what_is_there(pattern: str, box: StageBox, folder: Path) -> str:
    """What a person wants to know when no file could be taken for a pattern."""
    told, trouble = _probe("find_files.py", pattern, box, folder, _START_S)
    if told is None:
        return f"no file matches {pattern} (what is there instead could not be seen: {trouble})"
    matches = told.get("matches") or []
    if matches:
        kinds = "; ".join(f"{file['path']} is {_kind(file)}" for file in matches)
        return f"no regular file matches: {kinds}"
    near = "; ".join(f"{file['path']} ({_size(file)})" for file in told.get("near") or [])
    there = f"there is {near}" if near else "there are no files"
    return f"no file matches {pattern}; in {told.get('folder')} {there}"


def _kind(file: Mapping[str, Any]) -> str:
    """What a path that matches is, given that it could not be taken."""
    if file["kind"] == "file":
        return "a file behind a link, and links are not followed"
    return f"a {file['kind']}"


def _size(file: Mapping[str, Any]) -> str:
    return f"{file['size_bytes']} bytes" if file["kind"] == "file" else str(file["kind"])


def _probe(
    name: str, argument: str, box: StageBox, folder: Path, time_limit_s: float
) -> tuple[dict[str, Any] | None, str]:
    """What a probe printed, or why there is nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{Path(name).stem}.log"
    probe = box.layout.tools / name
    box.put(probe, (_PROBES / name).read_bytes())
    command = Command(
        argv=[*box.tools.python, "-I", "-S", str(probe), argument],
        cwd=box.layout.work,
        env={"PATH": "/usr/bin:/bin"},
        time_limit_s=time_limit_s,
    )
    try:
        finished = box.run(command, log)
    except SandboxError as error:
        return None, str(error.args[0])
    said = log.read_bytes() if log.is_file() else b""
    if not finished.ok:
        how = finished.start_error or finished.signal or f"exit status {finished.exit_code}"
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        return None, f"the probe ended with {how} {shorten(' '.join(last), _SHOWN)}".strip()
    try:
        answer = json.loads(said)
    except ValueError:
        return None, "the probe printed no JSON"
    return (answer, "") if isinstance(answer, dict) else (None, "the probe printed no table")
