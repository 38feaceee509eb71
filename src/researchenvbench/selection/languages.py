"""Which language a tree is written in: that of most bytes of its sources.

As GitHub counts, but for notebooks: their bytes are pictures and outputs, so they count for no
language, and neither do markup, data and documents. Folders of other people's code are left out.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .criteria import Criterion, Finding, answer

if TYPE_CHECKING:
    from collections.abc import Mapping

_LANGUAGES = {
    "Python": ("py", "pyx", "pyi"),
    "C and C++": ("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    "CUDA": ("cu", "cuh"),
    "Rust": ("rs",),
    "Go": ("go",),
    "Java": ("java",),
    "Kotlin": ("kt", "kts"),
    "Swift": ("swift",),
    "JavaScript": ("js", "jsx", "mjs"),
    "TypeScript": ("ts", "tsx"),
    "Vue": ("vue",),
    "Ruby": ("rb",),
    "PHP": ("php",),
    "Julia": ("jl",),
    "R": ("r",),
    "C#": ("cs",),
    "Objective-C": ("m", "mm"),
    "Shell": ("sh", "bash"),
    "Lua": ("lua",),
    "Scala": ("scala",),
    "Haskell": ("hs",),
}
_BY_ENDING = {ending: name for name, endings in _LANGUAGES.items() for ending in endings}


def judge_language(sizes: Mapping[str, int]) -> Finding:
    """Whether most of the sources, given as path and bytes, are Python."""
    totals: dict[str, int] = {}
    for path, size_bytes in sizes.items():
        language = _BY_ENDING.get(PurePosixPath(path).suffix.lower().removeprefix("."))
        if language:
            totals[language] = totals.get(language, 0) + size_bytes
    whole = sum(totals.values())
    if not whole:
        return answer(Criterion.PYTHON, False, "there are no sources of a known language")
    most = max(totals, key=lambda language: totals[language])
    share = f"{most} is {100 * totals[most] / whole:.0f} % of the bytes of its sources"
    if most != "Python":
        share += f", Python {100 * totals.get('Python', 0) / whole:.0f} %"
    return answer(Criterion.PYTHON, most == "Python", share)
