"""Source distributions: found on the indexes of this host, downloaded, unpacked.

Nothing of one is executed: no build, and no question for its metadata. Whether the file is
the one that a task names is `source`'s to check.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from .errors import SourceError
from .tarballs import extract_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pypi_simple import DistributionPackage

    from .task import SdistSource

_MAX_UNPACKED_BYTES = 4 * 1024**3


def download(
    source: SdistSource, installs: Mapping[str, str], into: Path
) -> tuple[Path, str | None]:
    """The archive in the folder `into`, and when it was uploaded, where the index says so.

    `installs` are the host's package settings as pip variables.

    Raises:
        SourceError: no folder and no index of this host has it.
    """
    import requests
    from pypi_simple import (
        PYPI_SIMPLE_ENDPOINT,
        NoSuchProjectError,
        UnparsableFilenameError,
        UnsupportedContentTypeError,
        UnsupportedRepoVersionError,
    )

    not_a_project_page = (
        requests.RequestException,
        NoSuchProjectError,
        UnparsableFilenameError,
        UnsupportedContentTypeError,
        UnsupportedRepoVersionError,
        FileNotFoundError,  # of an index that is a folder
        ValueError,  # of a page that says JSON and is none
        RecursionError,  # of one that is nested without end
    )
    for place in installs.get("PIP_FIND_LINKS", "").split():
        if (archive := _in_folder(source, _local(place) or Path(place))) is not None:
            return Path(shutil.copy2(archive, into)), None
    indexes = [installs.get("PIP_INDEX_URL", PYPI_SIMPLE_ENDPOINT)]
    indexes += installs.get("PIP_EXTRA_INDEX_URL", "").split()
    problems = []
    for index in indexes:
        try:
            found = _from_index(source, index, into)
        except not_a_project_page as error:
            problems.append(str(error)[:300] or type(error).__name__)
            continue
        if found is not None:
            return found
        problems.append("it serves no source archive of that version")
    raise SourceError(
        f"no index of this host serves the source of {source.name}=={source.version}: "
        + "; ".join(problems),
        advice="check the network, and the index that `pip config list` names",
    )


def _in_folder(source: SdistSource, folder: Path) -> Path | None:
    """The archive among the files of a folder, as pip's find-links has them."""
    from packaging.utils import canonicalize_name
    from pypi_simple import UnparsableFilenameError, parse_filename

    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        try:
            project, version, kind = parse_filename(path.name)
        except UnparsableFilenameError:
            continue
        same = project is not None and canonicalize_name(project) == canonicalize_name(source.name)
        if same and kind == "sdist" and version == source.version:
            return path
    return None


def _from_index(source: SdistSource, index: str, into: Path) -> tuple[Path, str | None] | None:
    from packaging.utils import canonicalize_name
    from pypi_simple import ProjectPage, PyPISimple

    def wanted(page: ProjectPage) -> DistributionPackage | None:
        return next(
            (
                package
                for package in page.packages
                if package.version == source.version and package.package_type == "sdist"
            ),
            None,
        )

    if (folder := _local(index)) is not None:
        # What pip reads there (PEP 503, as files).
        file = folder / canonicalize_name(source.name) / "index.html"
        html = file.read_text(encoding="utf-8", errors="replace")
        package = wanted(ProjectPage.from_html(source.name, html, base_url=file.as_uri()))
        if package is None:
            return None
        if (archive := _local(package.url)) is None:
            raise FileNotFoundError(f"{package.url} is not a file of this host")
        return Path(shutil.copy2(archive, into)), None
    with PyPISimple(index) as client:
        package = wanted(client.get_project_page(source.name, timeout=60))
        if package is None:
            return None
        path = into / PurePosixPath(package.filename).name
        client.download_package(package, path, verify=False, timeout=300)
        uploaded = package.upload_time
        return path, uploaded.isoformat() if uploaded else None


def _local(address: str) -> Path | None:
    """The path that a file:// address names; None for another address."""
    parts = urlsplit(address)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def unpack(archive: Path, tree: Path) -> None:
    """Unpack an archive; its one folder NAME-VERSION (PEP 517) becomes `tree`.

    Raises:
        SourceError: it is no archive, holds paths that lead out of it, or unpacks to
            more than any source.
    """
    unpacked = tree.with_name("unpacked")
    unpacked.mkdir()
    try:
        if archive.name.endswith(".zip"):
            with zipfile.ZipFile(archive) as opened:
                _check_size(sum(entry.file_size for entry in opened.infolist()), archive)
                opened.extractall(unpacked)  # noqa: S202  # keeps within the folder by itself
        else:
            with tarfile.open(archive) as opened:
                _check_size(sum(member.size for member in opened), archive)
                extract_data(opened, unpacked)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
    ) as error:
        raise SourceError(f"{archive.name}: cannot be unpacked: {error}") from error
    entries = list(unpacked.iterdir())
    (entries[0] if len(entries) == 1 and entries[0].is_dir() else unpacked).rename(tree)
    shutil.rmtree(unpacked, ignore_errors=True)


def _check_size(size_bytes: int, archive: Path) -> None:
    if size_bytes > _MAX_UNPACKED_BYTES:
        raise SourceError(f"{archive.name}: unpacks to {size_bytes} bytes, which is no source")
