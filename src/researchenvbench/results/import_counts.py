"""The numbers of C0, read from a record.

Verification writes them among a result's details. They are numbers only where the checker
came to its end: an inconclusive C0 has no count of what is missing, and never a zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from ..attempt import Verdict
from ..stored import Stored

if TYPE_CHECKING:
    from ..attempt import LevelResult


class _Missing(Stored):
    name: str
    required: bool
    decides: bool


class ImportCounts(Stored):
    """How many imported third-party modules there are, and which of them are missing."""

    third_party: int
    missing: tuple[_Missing, ...]
    total_paper: int
    missing_paper: int | None = None  #: None where the paper's reading leaves the attempt out

    @classmethod
    def of(cls, result: LevelResult | None) -> Self | None:
        """The counts of a C0 that was decided; None where there are none."""
        if result is None or result.verdict not in (Verdict.PASSED, Verdict.FAILED):
            return None
        try:
            return cls.model_validate(result.details)
        except ValidationError:
            return None  # a record of a version that counted otherwise

    @property
    def required(self) -> list[str]:
        """Missing modules that some code cannot do without."""
        return [module.name for module in self.missing if module.required]

    @property
    def optional(self) -> list[str]:
        """Missing modules whose absence all code that imports them expects."""
        return [module.name for module in self.missing if not module.required]
