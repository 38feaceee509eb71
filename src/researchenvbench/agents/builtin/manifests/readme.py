"""Install lines that a page tells people to type: `pip install …`, `conda install …`."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from . import conda
from .requirement import Declared, parse

if TYPE_CHECKING:
    from . import Manifests

_COMMAND = re.compile(
    r"(?:^|[`$!%>&;]|\bRUN|\bsudo)\s*(?:python3?\s+-m\s+|uv\s+)?"
    r"(?P<tool>pip3?|conda|mamba)\s+install\s+(?P<rest>[^`\n]*)"
)
#: Options of pip and conda that take a value.
_TAKE_VALUE = {
    "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url",
    "-f", "--find-links", "-t", "--target", "--trusted-host", "--channel", "-n", "--name",
    "-p", "--prefix", "--file", "--prefer-binary", "--override-channels",
}  # fmt: skip
_NO_VALUE = {"--prefer-binary", "--override-channels"}
_INSTALLERS = {"pip", "setuptools", "wheel", "uv", "conda", "poetry", "virtualenv", "build"}


def read(text: str, path: str, into: Manifests) -> None:
    """Add the packages and the extras of the repository that the page's lines install."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for number, line in enumerate(joined.splitlines(), start=1):
        for found in _COMMAND.finditer(line):
            _read_line(found["tool"], found["rest"], f"{path}:{number}", into)


def _read_line(tool: str, rest: str, where: str, into: Manifests) -> None:
    rest = re.split(r"\s(?:&&|\|\||;|#|\|)", rest)[0]
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
            continue
        if word.startswith("-"):
            if word in ("-e", "--editable") and at + 1 < len(words):
                continue
            if word in ("-f", "--find-links", "--extra-index-url", "--index-url", "-i"):
                into.places.append(words[at + 1] if at + 1 < len(words) else "")
            skip = word in _TAKE_VALUE - _NO_VALUE
            continue
        if re.match(r"^(in|from|the|it|and|with|or|to|by|a|via|using|for)$", word):
            return  # prose, not a command
        _read_word(tool, word.rstrip(",.") if word not in (".", "..") else word, where, into)


def _read_word(tool: str, word: str, where: str, into: Manifests) -> None:
    itself = re.match(r"^(?:\.{1,2}/?[\w./-]*)(?:\[([\w,\s.-]+)\])?$", word)
    if itself:
        into.readme_extras += [
            extra.strip() for extra in (itself.group(1) or "").split(",") if extra.strip()
        ]
        return
    if tool in ("conda", "mamba"):
        conda.add(word, where, into, "readme")
        return
    requirement = parse(word)
    if requirement is None:
        return
    name = canonicalize_name(requirement.name)
    if into.name and name == canonicalize_name(into.name):
        into.readme_extras += sorted(requirement.extras)
    elif name not in _INSTALLERS:
        into.declared.append(Declared(requirement, where, "readme"))
