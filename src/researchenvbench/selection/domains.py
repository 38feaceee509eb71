"""To which field a repository belongs, told by words: a guess, that orders and refuses nothing."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_README_LINES = 60
#: Where no word tells.
OTHER = "other"


def domain_of(about: Sequence[str], readme: str = "") -> tuple[str, str]:
    """The field, and the words that told it; `about` is name, description and topics.

    What stands there counts twice: a README speaks of neighbours too.
    """
    head = "\n".join(readme.splitlines()[:_README_LINES])
    own = " \n ".join(text.replace("_", " ") for text in about)
    best, most = OTHER, 0
    words: tuple[str, ...] = ()
    for domain, patterns in _domains():
        told = [found[0] for pattern in patterns if (found := pattern.search(own))]
        read = [found[0] for pattern in patterns if (found := pattern.search(head))]
        if (score := 2 * len(told) + len(read)) > most:
            best, most = domain, score
            words = tuple(dict.fromkeys(" ".join(word.lower().split()) for word in told + read))
    return best, ", ".join(words[:6]) if words else "no word of a field was found"


@cache
def _domains() -> tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]:
    text = files(__package__).joinpath("domains.toml").read_text(encoding="utf-8")
    return tuple(
        (domain, tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns))
        for domain, patterns in tomllib.loads(text)["domains"].items()
    )
