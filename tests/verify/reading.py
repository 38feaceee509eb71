"""What the tests of readers share."""

from __future__ import annotations

import zipfile
from pathlib import Path

from researchenvbench.verify.readers import Unreadable, Wanted, open_file
from researchenvbench.verify.readers.numbers import Limits

DATA = Path(__file__).parents[1] / "data"
FINITE = Limits()
FALLING = Limits(falling=True)


def faults(path: Path, kind: str, **wanted) -> str:
    """What is wrong with a file, in one text; empty where nothing is."""
    try:
        found = open_file(path, Wanted(format=kind, **wanted))
    except Unreadable as error:
        return str(error)
    return "; ".join(found.faults)


def cut(path: Path, to: Path, share: float) -> Path:
    content = path.read_bytes()
    to.write_bytes(content[: int(len(content) * share)])
    return to


def archive(path: Path, **entries: bytes) -> Path:
    """A zip archive; `__` in a name stands for a dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in entries.items():
            out.writestr(name.replace("__", "."), content)
    return path


def rewritten(to: Path, change) -> Path:
    """The zip checkpoint with its entries changed by `change(name, content)`."""
    with zipfile.ZipFile(DATA / "checkpoint.pt") as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.infolist():
            content = change(entry.filename, old.read(entry))
            if content is not None:
                new.writestr(entry.filename, content)
    return to
