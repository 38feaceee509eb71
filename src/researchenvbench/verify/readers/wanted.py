"""The words that all readers share: what is wanted of a file, and what was found in it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .numbers import Limits, Numbers
from .wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: The distribution that brings a module, where the names differ.
_DISTRIBUTIONS = {"PIL": "pillow"}


class Unreadable(Exception):  # noqa: N818 - it is a finding about a file, not a programming error
    """The file is not a whole file of the format that was asked for."""


class ReaderMissing(Exception):  # noqa: N818 - likewise a finding, about this host
    """A library that the format needs is not installed beside the harness."""


def need(module: str) -> Any:
    """Import an optional library.

    Raises:
        ReaderMissing: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ReaderMissing(distribution(module)) from error


def distribution(module: str) -> str:
    """The name by which a library is installed."""
    return _DISTRIBUTIONS.get(module.split(".")[0], module)


@dataclass(frozen=True)
class Wanted:
    """What a file must hold. The fields are those of `task.FileEvidence`."""

    format: str = "any"
    rows: int | None = None
    columns: tuple[str, ...] = ()
    numeric: Mapping[str, Limits] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    min_width: int | None = None
    min_height: int | None = None
    varied: bool = True
    min_seconds: float | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Wanted:
        """From the JSON form in which it reaches the reading process."""
        numeric = {name: Limits(**limits) for name, limits in data.pop("numeric", {}).items()}
        columns, keys = tuple(data.pop("columns", ())), tuple(data.pop("keys", ()))
        return cls(numeric=numeric, columns=columns, keys=keys, **data)


@dataclass
class Found:
    """What a file turned out to be, and in what it differs from what was wanted."""

    what: str
    faults: list[str] = field(default_factory=list)
    #: Of what was asked for in `numeric`, by name: `Numbers.fingerprint`.
    fingerprints: dict[str, tuple[str, str]] = field(default_factory=dict)

    def need_names(self, wanted: Iterable[str], there: Iterable[str], kind: str) -> None:
        """Note each wanted name that is not there, with those that are."""
        names = list(there)
        known = set(names)
        self.faults += [
            f"no {kind} {name!r}; it has {listed(names)}" for name in wanted if name not in known
        ]

    def need_numbers(self, name: str, kind: str, numbers: Numbers, limits: Limits) -> None:
        """Note in what the numbers under a name break their limits; tell them otherwise."""
        self.faults += [f"{kind} {name!r}: {fault}" for fault in numbers.faults(limits)]
        self.what += f"; {name} {numbers.summary()}"
        self.fingerprints[name] = numbers.fingerprint

    def need_size(self, width: int, height: int, wanted: Wanted) -> None:
        """Note a picture that is smaller than wanted."""
        for side, pixels, least in (
            ("wide", width, wanted.min_width),
            ("high", height, wanted.min_height),
        ):
            if least is not None and pixels < least:
                self.faults.append(f"{pixels} pixels {side}, at least {least} wanted")

    def need_all_numbers(
        self,
        wanted: Wanted,
        there: Iterable[str],
        kind: str,
        collect: Callable[[str], Numbers],
    ) -> None:
        """Check every name of `wanted.numeric`; `collect` reads the numbers under a name."""
        names = list(there)
        self.need_names(wanted.numeric, names, kind)
        for name, limits in wanted.numeric.items():
            if name in names:
                self.need_numbers(name, kind, collect(name), limits)
