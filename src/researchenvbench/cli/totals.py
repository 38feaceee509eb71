"""How `reb tasks totals` puts its numbers."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..run.totals import Sum, Total

_HEADINGS = ("files", "imported", "published", "equal", "third-party", "s")


def heading(width: int, *, checkout: bool) -> str:
    """The line above the rows; `width` is that of the longest task's name."""
    line = f"{'task':<{width}}" + "".join(f"  {text:>{_width(text)}}" for text in _HEADINGS)
    return line + ("   checked out: imported  third-party       s" if checkout else "")


def row(total: Total, width: int) -> str:
    """One task's line."""
    count = total.count
    if count is None:
        return f"{total.task:<{width}}  {total.problem}"
    published = "-" if total.published is None else str(total.published)
    equal = {None: "-", True: "yes", False: "NO"}[total.equal]
    cells = (count.files, count.total_paper, published, equal, count.third_party)
    values = [*map(str, cells), f"{count.seconds:.2f}"]
    line = f"{total.task:<{width}}" + "".join(
        f"  {value:>{_width(text)}}" for value, text in zip(values, _HEADINGS, strict=True)
    )
    if other := total.checkout:
        same = "" if other.numbers == count.numbers else "  DIFFERS"
        line += f"   {other.total_paper:>21}  {other.third_party:>11}  {other.seconds:>6.2f}{same}"
    return f"{line}   {total.problem}" if total.problem else line


def sum_words(totals: Sequence[Total], summed: Sum) -> Iterator[str]:
    """The lines below the rows."""
    seconds = sum(total.count.seconds for total in totals if total.count is not None)
    noun = "repository" if summed.counted == 1 else "repositories"
    line = f"sum: {summed.total_paper} imported modules in {summed.counted} {noun}"
    if summed.published is not None:
        line += f"; {summed.published} is expected: {'NOT equal' if summed.differs else 'equal'}"
    yield f"{line} ({seconds:.1f} s)"
    if summed.gone and summed.published_of_all is not None:
        rest = summed.published_of_all - summed.total_paper
        yield (
            f"{summed.published_of_all} are published for all; the other {rest} are of those "
            f"whose source is not available: {', '.join(summed.gone)}"
        )
    held = [total.equal for total in totals if total.equal is not None]
    yield f"published one by one: {len(held)}, of which {sum(held)} are equal"
    other = [total.checkout for total in totals if total.checkout is not None]
    if other:
        modules, seconds = sum(c.total_paper for c in other), sum(c.seconds for c in other)
        yield f"over checked-out files: {modules} imported modules ({seconds:.1f} s)"
    if summed.missing:
        yield f"could not be had: {', '.join(summed.missing)}"


def as_data(totals: Sequence[Total], summed: Sum) -> str:
    """The same as JSON."""
    tasks = [{**dataclasses.asdict(total), "equal": total.equal} for total in totals]
    return json.dumps({"tasks": tasks, "sum": dataclasses.asdict(summed)}, indent=1)


def _width(text: str) -> int:
    return max(len(text), 6)
