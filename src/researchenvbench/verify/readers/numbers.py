"""Numbers in the order in which they were found, and whether they keep their limits.

Only what is needed to judge and to tell is held, so that a million numbers take no memory.
A NaN keeps no limit: it is neither finite, nor at least, at most, or lower than anything.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .wording import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Limits:
    """What numbers must satisfy. The fields are those of `task.Bounds`."""

    finite: bool = True
    min: float | None = None
    max: float | None = None
    falling: bool = False


def parse_number(text: str) -> float | None:
    """The number that `text` is: `12`, `1e-3`, `nan`, `-inf`; None for `1,024` or `1_024`."""
    text = text.strip()
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


class Numbers:
    """A series of numbers, reduced to what a judgement needs.

    `stored_as` is the type in which their file holds them, in its own words.
    """

    def __init__(self, stored_as: str = "") -> None:
        self.count = 0
        self.first = math.nan
        self.last = math.nan
        self.low = math.inf
        self.high = -math.inf
        self.nans = 0
        self.infinities = 0
        self.not_numbers = 0
        self._example = ""
        self._stored_as = stored_as
        self._digest = hashlib.sha256()

    def add(self, value: float) -> None:
        """Take one number."""
        if not self.count:
            self.first = value
        self.count += 1
        self.last = value
        if math.isnan(value):
            self.nans += 1
            return
        if math.isinf(value):
            self.infinities += 1
        self.low = min(self.low, value)
        self.high = max(self.high, value)

    def add_text(self, text: str) -> None:
        """Take what should be a number in text."""
        number = parse_number(text)
        if number is None:
            self.add_other(text)
        else:
            self.add(number)

    def add_other(self, value: object) -> None:
        """Take what should have been a number and is not."""
        if not self.not_numbers:
            self._example = shorten(repr(value))
        self.not_numbers += 1

    def add_json(self, value: object) -> None:
        """Take a number, or each number of (nested) lists; truth values are no numbers."""
        for item in _leaves(value):
            if isinstance(item, bool) or not isinstance(item, int | float):
                self.add_other(item)
                continue
            try:
                self.add(float(item))
            except OverflowError:
                self.add(math.inf if item > 0 else -math.inf)

    def add_array(self, array: Any) -> None:
        """Take every element of a numpy array of bool, integer or real numbers, in order."""
        if not array.size:
            return
        flat = array.reshape(-1).astype("float64", copy=False)
        if not self.count:
            self.first = float(flat[0])
        self.count += int(flat.size)
        self.last = float(flat[-1])
        self._digest.update((flat + 0.0).tobytes())  # by which -0 is 0
        nan = flat != flat  # only a NaN differs from itself
        nans = int(nan.sum())
        self.nans += nans
        rest = flat[~nan] if nans else flat
        if rest.size:
            low, high = float(rest.min()), float(rest.max())
            if math.isinf(low) or math.isinf(high):
                self.infinities += int((abs(rest) == math.inf).sum())
            self.low = min(self.low, low)
            self.high = max(self.high, high)

    @property
    def fingerprint(self) -> tuple[str, str]:
        """How many numbers of which type these are, and a digest of those of arrays.

        Series with the same first part and another second are different numbers.
        """
        stored_as = f" as {self._stored_as}" if self._stored_as else ""
        return f"{self.count} numbers{stored_as}", self._digest.hexdigest()

    def faults(self, limits: Limits) -> list[str]:
        """Each limit that does not hold, with the number that breaks it."""
        faults = []
        if self.not_numbers:
            faults.append(
                f"{self.not_numbers} of its values are no numbers, such as {self._example}"
            )
        elif not self.count:
            return ["no numbers at all"]
        if limits.finite and self.nans:
            faults.append(f"{self.nans} of {self.count} numbers are NaN")
        if limits.finite and self.infinities:
            faults.append(f"{self.infinities} of {self.count} numbers are infinite")
        bounded = limits.min is not None or limits.max is not None
        if bounded and self.nans and not limits.finite:
            faults.append(f"{self.nans} of {self.count} numbers are NaN, which keeps no bound")
        if limits.min is not None and self.low < limits.min:
            faults.append(f"{self.low:g} is below {limits.min:g}")
        if limits.max is not None and self.high > limits.max:
            faults.append(f"{self.high:g} is above {limits.max:g}")
        if limits.falling:
            if self.count < 2:
                faults.append("only one number, so nothing can be falling")
            elif not self.last < self.first:
                faults.append(f"not falling: the first is {self.first:g}, the last {self.last:g}")
        return faults

    def summary(self) -> str:
        """The numbers in a few words."""
        if not self.count:
            return "none"
        if self.count == 1:
            return f"{self.first:g}"
        text = f"{self.count} numbers, first {self.first:g}, last {self.last:g}"
        return text if self.low > self.high else f"{text}, range {self.low:g} to {self.high:g}"


def _leaves(value: object) -> Iterator[object]:
    """The values in nested lists, in order, without recursion."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            yield item
