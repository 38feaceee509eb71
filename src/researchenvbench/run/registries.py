"""Whether the package indexes that installs use answer here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..sandbox.host_environment import redacted
from .doctor_line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIME_LIMIT_S = 5.0
_UNAUTHORISED = (401, 403, 407)
_SERVER_ERROR = 500
_ADVICE = "check the network, and the index that `pip config list` names"


def registry_lines(installs: Mapping[str, str]) -> list[Line]:
    """One line an index, asked for at the same time; passwords are not printed.

    Args:
        installs: The host's package settings as pip variables.
    """
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    if installs.get("PIP_NO_INDEX", "").lower() in ("1", "true", "yes", "on"):
        return [Line("package index", "none is used: pip is told so (no-index)")]
    indexes = [installs.get("PIP_INDEX_URL", PYPI_SIMPLE_ENDPOINT)]
    indexes += installs.get("PIP_EXTRA_INDEX_URL", "").split()
    with ThreadPoolExecutor(len(indexes)) as threads:
        return list(threads.map(lambda index: _ask(index, installs), indexes))


def _ask(index: str, installs: Mapping[str, str]) -> Line:
    import requests

    shown = redacted(index)
    if index.startswith(("/", "file:")):
        folder = Path(unquote(urlsplit(index).path))
        if folder.exists():
            return Line("package index", f"{shown}: is there")
        return Line("package index", f"{shown}: there is no such folder", "missing", _ADVICE)
    certificates = installs.get("PIP_CERT") or installs.get("SSL_CERT_FILE")
    try:
        # Only the head of the answer is waited for: an index can have hundreds of MB.
        with requests.get(
            index, stream=True, timeout=_TIME_LIMIT_S, verify=certificates or True
        ) as answer:
            status, seconds = answer.status_code, answer.elapsed.total_seconds()
    except (requests.RequestException, OSError) as error:
        why = redacted(str(error))[:200] or type(error).__name__
        return Line("package index", f"{shown}: does not answer: {why}", "missing", _ADVICE)
    if status in _UNAUTHORISED or status >= _SERVER_ERROR:
        return Line("package index", f"{shown}: answers with {status}", "missing", _ADVICE)
    return Line("package index", f"{shown}: answers ({seconds:.1f} s)")
