"""What a failed import says: its cause, as far as the words tell it. Pure.

Each answer is that of the imports probe: the statement, the exception's kind, text and name,
and the file in which it was raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Cause:
    """Why an import failed."""

    kind: Literal["missing", "name_gone", "bound", "library", "attribute", "unknown"]
    module: str = ""  #: the module that is missing, or that lacks the name
    name: str = ""  #: the name that it lacks, or the library's
    requirement: str = ""
    where: str = ""  #: file in which it was raised; empty: the statement itself
    text: str = ""

    @property
    def sentence(self) -> str:
        """For the log."""
        return self.text.strip().splitlines()[0][:240] if self.text.strip() else self.kind


#: Breaks between releases that many repositories meet, by the words of the error.
_KNOWN_BOUNDS = (
    (r"module 'numpy' has no attribute '(float|int|bool|object|complex|str|long|unicode)'",
     "numpy<1.24"),
    ((r"compiled using NumPy 1\.x cannot be run|_ARRAY_API not found|numpy\.core\.multiarray failed"
     r"|was removed in the NumPy 2\.0 release|numpy\.dtype size changed"), "numpy<2"),
    (r"Descriptors cannot (not )?be created directly", "protobuf<3.21"),
    (r"No module named 'pkg_resources'", "setuptools<81"),
    (r"No module named 'distutils", "setuptools"),
    (r"No module named 'numpy\.(core|_core)\.", "numpy<2"),
)  # fmt: skip


def cause_of(answer: Mapping[str, Any]) -> Cause:
    """The cause of one failed statement."""
    text, where = str(answer.get("text") or ""), str(answer.get("where") or "")
    for pattern, requirement in _KNOWN_BOUNDS:
        if re.search(pattern, text):
            return Cause("bound", requirement=requirement, where=where, text=text)
    asked = re.search(r"([A-Za-z][\w.-]*(?:[<>=!~]=?[\w.*]+,?)+) is required", text)
    if asked and _is_requirement(asked[1].rstrip(",")):
        wanted = asked[1].rstrip(",")
        return Cause("bound", requirement=wanted, where=where, text=text)
    asked = re.search(r"(?:requires|need|install) ['\"`]?([A-Za-z][\w.-]*[<>=!~]=[\w.]+)", text)
    if asked and _is_requirement(asked[1]):
        return Cause("bound", requirement=asked[1], where=where, text=text)
    missing = re.search(r"No module named '?([\w.]+)'?", text)
    if answer.get("kind") == "ModuleNotFoundError" and missing:
        return Cause("missing", module=missing[1], where=where, text=text)
    gone = re.search(
        r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'", text
    )
    if gone:
        return Cause("name_gone", module=gone[2], name=gone[1], where=where, text=text)
    library = re.search(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file", text)
    if library:
        return Cause("library", name=library[1], where=where, text=text)
    attribute = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", text)
    if attribute:
        return Cause("attribute", module=attribute[1], name=attribute[2], where=where, text=text)
    optional = re.search(
        r"(?:pip install|install it with|please install)\s+[`'\"]?(?:-U )?([A-Za-z][\w.-]+)", text
    )
    if answer.get("kind") in ("ImportError", "RuntimeError") and optional:
        return Cause("missing", module=optional[1], where=where, text=text)
    return Cause("unknown", where=where, text=f"{answer.get('kind')}: {text}")


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True
