"""Originals on a hub: what the Hugging Face Hub's protocol says of two requests.

`GET {endpoint}/api/{type}s/{repo}/revision/{revision}?blobs=true` lists the files with their
sizes and digests, `GET {endpoint}/{repo}/resolve/{revision}/{path}` gives one. Every file is
verified: by the SHA-256 of large ones (LFS), by git's own id of the others. The endpoint is
that of HF_ENDPOINT, the token that of HF_TOKEN, both of the harness's own environment. The
token is sent to the endpoint alone, and is in no message, log or sandbox.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..asset import is_relative
from ..errors import AssetError
from .http import Client, Refused
from .progress import Progress, check_room

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..asset import HubAsset

_TYPES = {"model": "", "dataset": "datasets/", "space": "spaces/"}


@dataclass(frozen=True)
class HubFile:
    """A file of a repository, as the hub lists it."""

    path: str
    size_bytes: int
    sha256: str  #: of a large file; empty for another
    git_sha1: str  #: git's id of the others

    def fits(self, file: Path) -> bool:
        """Whether the file has the size and the content that the hub lists."""
        if not file.is_file() or file.stat().st_size != self.size_bytes:
            return False
        with file.open("rb") as stream:
            if self.sha256:
                return hashlib.file_digest(stream, "sha256").hexdigest() == self.sha256
            total = hashlib.sha1(b"blob %d\0" % self.size_bytes, usedforsecurity=False)
            while chunk := stream.read(1 << 20):
                total.update(chunk)
        return total.hexdigest() == self.git_sha1


def endpoint() -> str:
    """The hub's address."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def page(asset: HubAsset) -> str:
    """The repository's own page, which git knows too."""
    return f"{endpoint()}/{_TYPES[asset.type]}{asset.repo}"


def fetch(asset: HubAsset, partial: Path, say: Callable[[str], None], what: str) -> Path:
    """Fetch the asset's files below `partial`, going on where an earlier try ended.

    Returns the folder that holds them and nothing else.

    Raises:
        AssetError: they cannot be had, or are not what the hub lists.
        OSError: the disk is full, or cannot be written.
    """
    try:
        with Client(say, token=os.environ.get("HF_TOKEN") or None) as client:
            wanted = _listed(asset, client)
            return _fetch_all(asset, wanted, client, partial, say, what)
    except Refused as answer:
        raise _refusal(asset, answer) from answer


def _fetch_all(
    asset: HubAsset,
    wanted: list[HubFile],
    client: Client,
    partial: Path,
    say: Callable[[str], None],
    what: str,
) -> Path:
    folder = partial / "files"
    there = {file.path for file in wanted if file.fits(folder / file.path)}
    coming = sum(file.size_bytes for file in wanted if file.path not in there)
    check_room(partial, coming)
    progress = Progress(say, what, coming or None)
    if coming:
        say(f"{what}: {len(wanted) - len(there)} files, {coming / 1e6:.1f} MB, from {page(asset)}")
    for number, file in enumerate(wanted):
        if file.path in there:
            continue
        url = f"{page(asset)}/resolve/{asset.revision}/{quote(file.path)}"
        cut_off = partial / f"{number}.part"
        before = progress.done_bytes
        client.download(url, cut_off, progress, size_bytes=file.size_bytes)
        progress.at(before + file.size_bytes)
        if not file.fits(cut_off):
            cut_off.unlink()
            raise AssetError(
                f"{file.path}: what came is another file than the hub lists, of the same size",
                advice="try again, and check HF_ENDPOINT and whether a proxy changes what it "
                "passes on; --assets stand-in does without, where the task has one",
            )
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        cut_off.rename(target)
    return folder


def described(asset: HubAsset, say: Callable[[str], None]) -> tuple[list[HubFile], dict[str, Any]]:
    """The files that the asset names, and all that the hub says of the repository.

    Of the asset's revision; where it has none, of what the default branch is today.

    Raises:
        AssetError: it cannot be had.
    """
    try:
        with Client(say, token=os.environ.get("HF_TOKEN") or None) as client:
            return _described(asset, client)
    except Refused as answer:
        raise _refusal(asset, answer) from answer


def _listed(asset: HubAsset, client: Client) -> list[HubFile]:
    return _described(asset, client)[0]


def _described(asset: HubAsset, client: Client) -> tuple[list[HubFile], dict[str, Any]]:
    at = f"/revision/{asset.revision}" if asset.revision else ""
    said = client.json(f"{endpoint()}/api/{asset.type}s/{asset.repo}{at}?blobs=true")
    try:
        if asset.revision not in (None, said["sha"]):
            raise AssetError(
                f"{page(asset)} answers for revision {said['sha']} instead of {asset.revision}",
                advice="a revision is a commit's id; look it up on the repository's page",
            )
        files = [_file(entry) for entry in said["siblings"]]
    except (KeyError, TypeError, ValueError) as error:
        raise AssetError(
            f"{page(asset)}: the list of its files cannot be read ({type(error).__name__})",
            advice="check HF_ENDPOINT: it must speak the Hugging Face Hub's protocol",
        ) from error
    patterns = asset.files or ("*",)
    chosen = [f for f in files if any(fnmatch.fnmatchcase(f.path, p) for p in patterns)]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(file.path, pattern) for file in files):
            some = ", ".join(file.path for file in files[:8])
            raise AssetError(
                f"{page(asset)} has no file {pattern} at that revision; it has {some or 'none'}",
                advice="correct `files` of the asset in the task",
            )
    return sorted(chosen, key=lambda file: file.path), said


def _file(entry: dict[str, Any]) -> HubFile:
    path, size = entry["rfilename"], entry["size"]
    large = entry.get("lfs") or {}
    if not is_relative(path) or not isinstance(size, int):
        raise ValueError(path)
    return HubFile(path, size, str(large.get("sha256", "")), str(entry["blobId"]))


def _refusal(asset: HubAsset, answer: Refused) -> AssetError:
    where = page(asset)
    token = "HF_TOKEN is set" if os.environ.get("HF_TOKEN") else "HF_TOKEN is not set"
    said = f"{where} answers {answer.status}" + (f": {answer.words}" if answer.words else "")
    instead = "or take --assets stand-in, where the task has one"
    if answer.status in (401, 403):
        if asset.gated or "gated" in answer.words.lower():
            return AssetError(
                f"it is gated: {said} ({token})",
                advice=f"accept its conditions on {where} with an account, and set HF_TOKEN to a "
                f"token of that account for this command; {instead}",
            )
        return AssetError(
            f"it is not there, or not for everybody: {said} ({token})",
            advice=f"check `repo` of the asset; where it is private, set HF_TOKEN; {instead}",
        )
    if answer.status == 404:
        return AssetError(
            f"it is not there: {said}",
            advice=f"check `repo`, `type` and `revision` of the asset in the task; {instead}",
        )
    return AssetError(said, advice=f"check HF_ENDPOINT and the network; {instead}")
