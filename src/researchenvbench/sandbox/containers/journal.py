"""What was done in a build's container, kept on this host so that nothing is done twice.

The journal lies in the attempt's folder. Beside it lies what commands printed and what was
read: a harness that comes back asks for all of that again, in the same order, and what it
then decides must be what it decided before.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ...process import Finished

if TYPE_CHECKING:
    from pathlib import Path

#: Of how a command ended: where its log lies is another place each time.
_UNKEPT = ("log", "leftovers")


@dataclass
class Started:
    """A command that was started, and how it ended."""

    digest: str  #: of what was asked
    token: str  #: by which it is known in the container
    began: float  #: by the build's clock
    log: str  #: relative to the attempt's folder
    log_at: int  #: where its output begins there
    log_end: int
    end: dict[str, Any] | None = None  #: what `Finished` says; None while it runs

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Started:
        """From a file.

        Raises:
            TypeError: a value is not of its kind, or one is missing.
        """
        started = cls(**entry)
        texts = (started.digest, started.token, started.log)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a text is none")
        if not all(isinstance(place, int) for place in (started.log_at, started.log_end)):
            raise TypeError("a place in the log is none")
        if not isinstance(started.began, float):
            raise TypeError("a time is none")
        if started.end is not None:
            Finished(**started.end, log=None)  # type: ignore[arg-type]  # its names are tried
        return started

    def finished(self, log: Path) -> Finished | None:
        """How it ended, with its log at `log`; None where it has not."""
        return None if self.end is None else Finished(**self.end, log=log)

    def ended(self, finished: Finished) -> None:
        """Note how it ended."""
        self.end = {name: value for name, value in asdict(finished).items() if name not in _UNKEPT}


@dataclass
class WasRead:
    """A file that was read, or why it was not."""

    path: str
    refused: str = ""


@dataclass
class Journal:
    """A build's container, and what was done in it."""

    container: str
    key: str  #: digest of what the build is for; another one is another build
    image: str
    began: float  #: by the build's clock
    commands: list[Started] = field(default_factory=list)
    reads: list[WasRead] = field(default_factory=list)
    idle_s: float = 0.0  #: while no harness was there and nothing ran
    resumed: float = 0.0  #: when a harness last came back
    limit: str = ""  #: why the build was ended before its agent was
    freezing: float = 0.0  #: since when
    left: list[str] = field(default_factory=list)  #: what ran when it was frozen
    path: Path | None = None

    @classmethod
    def load(cls, path: Path) -> Journal | None:
        """The journal at `path`, or None where there is none that can be read."""
        try:
            kept = json.loads(path.read_bytes())
            kept["commands"] = [Started.of(entry) for entry in kept["commands"]]
            kept["reads"] = [WasRead(**entry) for entry in kept["reads"]]
            journal = cls(**kept, path=path)
            texts = (journal.container, journal.key, journal.image, journal.limit)
            numbers = (journal.began, journal.idle_s, journal.resumed, journal.freezing)
            entire = (
                all(isinstance(text, str) for text in texts)
                and all(isinstance(number, int | float) for number in numbers)
                and all(isinstance(name, str) for name in journal.left)
                and all(isinstance(entry.path, str) for entry in journal.reads)
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return journal if entire else None

    def save(self) -> None:
        """Write it, atomically."""
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        part = self._place.with_suffix(".part")
        part.write_text(json.dumps(content))
        part.replace(self._place)

    def remove(self) -> None:
        """Remove it and what lies beside it; it may be gone already."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._place.unlink(missing_ok=True)

    def keep(self, name: str, content: bytes) -> None:
        """Keep an output or a file that was read."""
        part = self.beside(f".{name}")
        part.write_bytes(content)
        part.replace(self._folder / name)

    def beside(self, name: str) -> Path:
        """A place for a file, which is gone when the journal is."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return self._folder / name

    def kept(self, name: str) -> bytes | None:
        """What was kept by that name."""
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return None

    def keep_outputs(self) -> None:
        """Take what ended commands have printed out of the logs, which are written anew.

        This can be interrupted and done again: what is kept already is not looked for.
        """
        logs: set[str] = set()
        for number, entry in enumerate(self.commands):
            name = f"output-{number}"
            if entry.end is not None and self.kept(name) is None:
                try:
                    with (self._place.parent / entry.log).open("rb") as log:
                        log.seek(entry.log_at)
                        content = log.read(max(0, entry.log_end - entry.log_at))
                except OSError:
                    content = b""
                self.keep(name, content)
            logs.add(entry.log)
        for place in logs:
            (self._place.parent / place).unlink(missing_ok=True)

    @property
    def stopped(self) -> bool:
        """Whether it was we who stopped the container."""
        return bool(self.freezing or self.limit)

    @property
    def _place(self) -> Path:
        assert self.path is not None  # noqa: S101 - those that are kept have one
        return self.path

    @property
    def _folder(self) -> Path:
        return self._place.with_suffix(".kept")
