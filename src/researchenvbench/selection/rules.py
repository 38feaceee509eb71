"""What code, scripts, settings and requirements show of a criterion, by rules that are data.

One small engine over `rules.toml`. What a Python file uses comes from its syntax tree
(`code`); other files are read by lines.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..schema import Model, compile_pattern
from ..verify.statements import syntax
from .code import uses_of
from .criteria import Criterion, Evidence
from .lines import decode, excerpt, lines_of
from .requirements import is_requirements, required_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHELL = frozenset({".sh", ".bash", ".slurm", ".sbatch", ".zsh"})
_DOCUMENTS = frozenset({".md", ".rst", ".markdown"})
_SETTINGS = frozenset({".yaml", ".yml", ".toml", ".json"})
_NATIVE = frozenset({".cu", ".cuh", ".hip", ".h", ".hpp", ".cpp", ".cc"})
#: A line of YAML, TOML or JSON that gives a name something.
_SETTING = re.compile(
    r"""\s*(?:-\s+)?["']?(?P<name>[\w.-]+)["']?\s*[:=]\s*["']?(?P<text>[^"',#]*)"""
)
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


class Rule(Model):
    """One sign of a criterion; `rules.toml` says what its parts are."""

    criterion: Criterion
    says: str
    names: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    texts: str = ""
    settings: str = ""
    files: tuple[str, ...] = ()
    lines: str = ""
    commands: str = ""
    requirements: tuple[str, ...] = ()
    weak: bool = False


@dataclass(frozen=True)
class Sign:
    """Something that a file shows."""

    criterion: Criterion
    rule: int  #: its place among the rules: what comes first is the stronger evidence
    evidence: Evidence
    weak: bool


class _Compiled:
    """A rule with its patterns compiled; a part that it does not have is None."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        self.rule = rule
        self.texts = _pattern(rule.texts)
        self.settings = _pattern(rule.settings)
        self.lines = _pattern(rule.lines)
        self.commands = _pattern(rule.commands)
        self.requirements = _pattern("|".join(rule.requirements))
        self.below = tuple(f"{name}." for name in rule.names)

    def uses(self, kind: str, value: str) -> bool:
        """Whether code that uses this shows what the rule asks for."""
        if kind == "name":
            return value in self.rule.names or value.startswith(self.below)
        if kind == "method":
            return value in self.rule.methods
        pattern = self.texts if kind == "text" else self.settings
        return pattern is not None and bool(pattern.fullmatch(value))

    def sign(self, path: str, line: int, text: str) -> Sign:
        """What the line shows."""
        evidence = Evidence(file=path, line=line, text=excerpt(text), says=self.rule.says)
        return Sign(self.rule.criterion, self.number, evidence, self.rule.weak)


def is_read(path: str) -> bool:
    """Whether a rule can find something within this file."""
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    known = {".py", *_SHELL, *_DOCUMENTS, *_SETTINGS, *_NATIVE}
    return suffix in known or is_requirements(path)


def signs_by_name(path: str) -> Iterator[Sign]:
    """What the name of a file shows by itself."""
    for compiled in _rules():
        if path.lower().endswith(compiled.rule.files):
            yield compiled.sign(path, 0, "")


def signs_in(path: str, content: bytes) -> Iterator[Sign]:
    """What a file shows, in the order of the rules and not of its lines."""
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    text = decode(content)
    if suffix == ".py":
        yield from _in_python(path, content, text.splitlines())
    if is_requirements(path):
        yield from _in_requirements(path, text)
    if suffix in _SHELL:
        yield from _in_lines(path, _without_comments(text), "commands")
    elif suffix in _DOCUMENTS:
        yield from _in_lines(path, _code_blocks(text, suffix), "commands")
    elif suffix in _SETTINGS:
        yield from _in_settings(path, _without_comments(text))
    elif suffix in _NATIVE:
        yield from _in_lines(path, lines_of(text), "lines")


def _in_python(path: str, content: bytes, lines: Sequence[str]) -> Iterator[Sign]:
    tree = syntax(content)
    if isinstance(tree, str):
        return
    seen = set()
    for use in uses_of(tree):
        for compiled in _rules():
            if (compiled.number, use.line) not in seen and compiled.uses(use.kind, use.value):
                seen.add((compiled.number, use.line))
                line = lines[use.line - 1] if use.line <= len(lines) else use.value
                yield compiled.sign(path, use.line, line)


def _in_requirements(path: str, text: str) -> Iterator[Sign]:
    lines = text.splitlines()
    for number, name in required_by(path, text):
        for compiled in _rules():
            if compiled.requirements is not None and compiled.requirements.fullmatch(name):
                yield compiled.sign(path, number, lines[number - 1] if number else name)


def _in_settings(path: str, lines: Sequence[tuple[int, str]]) -> Iterator[Sign]:
    for number, line in lines:
        if match := _SETTING.match(line):
            setting = f"{match['name']}={match['text'].strip()}"
            for compiled in _rules():
                if compiled.uses("setting", setting):
                    yield compiled.sign(path, number, line)


def _in_lines(path: str, lines: Sequence[tuple[int, str]], part: str) -> Iterator[Sign]:
    for compiled in _rules():
        pattern: re.Pattern[str] | None = getattr(compiled, part)
        if pattern is None:
            continue
        for number, line in lines:
            if pattern.search(line):
                yield compiled.sign(path, number, line)


def _without_comments(text: str) -> list[tuple[int, str]]:
    numbered = lines_of(text)
    return [entry for entry in numbered if not entry[1].lstrip().startswith(("#", "//"))]


def _code_blocks(text: str, suffix: str) -> list[tuple[int, str]]:
    """Lines of a document that are to be typed: within fences, or indented in reStructuredText."""
    found = []
    inside = False
    for number, line in lines_of(text):
        if _FENCE.match(line):
            inside = not inside
        elif inside or (suffix == ".rst" and line.startswith(("   ", "\t"))):
            found.append((number, line))
    return found


@cache
def _rules() -> tuple[_Compiled, ...]:
    text = files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    rules = [Rule.model_validate(entry) for entry in tomllib.loads(text)["rules"]]
    return tuple(_Compiled(number, rule) for number, rule in enumerate(rules))


def _pattern(text: str) -> re.Pattern[str] | None:
    return compile_pattern(text) if text else None
