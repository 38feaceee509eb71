"""Originals that a server gives: a file with a known SHA-256, or an archive of files."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..asset import is_relative
from ..errors import AssetError
from ..source import digest_file
from ..tarballs import MisleadingError, extract_data
from .http import Client, Refused
from .progress import Progress, check_room

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..asset import UrlAsset

_LINK = 0o120000  #: the kind of a link in a zip's Unix mode, see stat(2)
_KIND = 0o170000


def fetch(asset: UrlAsset, partial: Path, say: Callable[[str], None], what: str) -> Path:
    """Fetch the asset's file below `partial`, going on where an earlier try ended.

    Raises:
        AssetError: it cannot be had, or is not the one that the task names.
        OSError: the disk is full, or cannot be written.
    """
    host = urlsplit(asset.url).netloc
    file = partial / "file.part"
    if file.is_file() and digest_file(file) == asset.sha256:
        return file  # it was there, and what came after was cut off
    say(f"{what}: from {host}")
    try:
        with Client(say) as client:
            kind = client.download(asset.url, file, Progress(say, what, asset.size_bytes))
    except Refused as answer:
        raise _refusal(asset, answer) from answer
    found = digest_file(file)
    if found == asset.sha256:
        return file
    with file.open("rb") as stream:
        start = stream.read(512).lstrip().lower()
    size = file.stat().st_size
    file.unlink()
    if "text/html" in kind or start.startswith((b"<!doctype html", b"<html")):
        raise AssetError(
            f"a web page came from {host} instead of the file ({size} bytes)",
            advice=f"open {asset.url} in a browser: it may ask for a login or a consent",
        )
    raise AssetError(
        f"{host} gave another file: {size} bytes with the sha256 {found}, "
        f"the task says {asset.sha256}",
        advice="the file has changed there, or the task is wrong; nothing of it is used",
    )


def size_of(asset: UrlAsset, say: Callable[[str], None]) -> int | None:
    """How large the original is, where its server says so; it is not fetched.

    Raises:
        AssetError: it is not there any more, or its server cannot be reached.
    """
    try:
        with Client(say) as client:
            return client.size_bytes(asset.url)
    except Refused as answer:
        raise _refusal(asset, answer) from answer


def _refusal(asset: UrlAsset, answer: Refused) -> AssetError:
    gone = answer.status in (404, 410)
    return AssetError(
        f"{asset.url} answers {answer.status} {answer.words}".rstrip(),
        advice=f"{'correct the address in the task' if gone else 'look at the address'}, "
        "or take --assets stand-in, where the task has one",
    )


def unpack(archive: Path, asset: UrlAsset, into: Path) -> None:
    """Unpack the archive into the new folder `into`.

    Raises:
        AssetError: it is no such archive, or names places outside of that folder.
        OSError: the disk is full, or cannot be written.
    """
    into.mkdir()
    try:
        if asset.unpack == "zip":
            _unzip(archive, into)
        else:
            with tarfile.open(archive) as opened:
                check_room(into, sum(member.size for member in opened))
                extract_data(opened, into)
    except MisleadingError as error:
        raise AssetError(f"the archive is not unpacked: {error}", advice=_WRONG) from error
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,  # a compression that is not known here
        RuntimeError,  # a zip with a password
        shutil.ReadError,
    ) as error:
        raise AssetError(f"it is no {asset.unpack} that can be read: {error}") from error


_WRONG = "no archive of data needs that; look at where it comes from"


def _unzip(archive: Path, into: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        check_room(into, sum(entry.file_size for entry in entries))
        for entry in entries:
            name = entry.filename.rstrip("/")
            if not is_relative(name) or entry.external_attr >> 16 & _KIND == _LINK:
                raise AssetError(
                    f"the archive is not unpacked: {entry.filename!r} leads out of it or is a link",
                    advice=_WRONG,
                )
        opened.extractall(into)  # noqa: S202  # looked at above
