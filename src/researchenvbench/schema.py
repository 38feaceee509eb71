"""What all data files that people write share: strict models, and words for what does not fit.

A file is checked against pydantic models that know no other keys. What is wrong with it is
said in one line a fault: the file, the key, what was found there, and, where one is near,
what was probably meant. Which data there are is the subject of `task`.
"""

from __future__ import annotations

import difflib
import re
import types
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails


class Model(BaseModel):
    """Base of all data of such a file: immutable, no unknown key, no infinite number."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression of a data file.

    Raises:
        ValueError: it is none, in words for whoever wrote the file.
    """
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}: {shorten(pattern)}") from error


def check_specifier(value: str) -> str:
    """A version specifier of a data file, as it is.

    Raises:
        ValueError: it is none, in words for whoever wrote the file.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(value)
    except InvalidSpecifier as error:
        raise ValueError(
            f"not a version specifier such as >=3.9,<3.13: {shorten(value)}"
        ) from error
    return value


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where a known word is near, else nothing."""
    # Nobody mistypes a word at that length, and the comparison takes its square.
    close = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def suggest_path(path: Path) -> str:
    """Of a path that is not there: which part of it is absent, and what was probably meant."""
    absent = path.absolute()
    while not absent.parent.is_dir() and absent.parent != absent:
        absent = absent.parent
    beside: list[str] = []
    with suppress(OSError):  # a folder that may not be listed suggests nothing
        beside = [entry.name for entry in absent.parent.iterdir()]
    return f"{absent} is not there{suggest(absent.name, beside)}"


def shorten(value: Any, limit: int = 60) -> str:
    """`value` as Python writes it, cut to what fits into a sentence."""
    if isinstance(value, str | bytes):
        value = value[:limit]  # one byte more than fits is cut below
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def explain(path: Path, error: ValidationError, model: type[Model]) -> list[str]:
    """One line a fault of the file at `path`, which should have held a `model`."""
    lines = []
    for fault in error.errors():
        parts = [*_keys(model, fault["loc"]), _sentence(fault, model)]
        lines.append(f"{path}: {': '.join(part for part in parts if part)}")
    return list(dict.fromkeys(lines))


def _keys(model: type[Model], where: Sequence[int | str]) -> list[str]:
    """The place of a fault as the file names it; nothing for one of the file as a whole.

    pydantic's own name of it also holds the kind by which it knew a table, and `[key]`.
    """
    keys, at = [], (model,)
    for part in where:
        of_kind = any(_is_model(table) and part in _tags(table) for table in _members(at[0]))
        if not of_kind and part != "[key]":
            keys.append(shorten(str(part))[1:-1])
        at = (_step(at[0], part),)
    return [".".join(keys)]


def _sentence(fault: ErrorDetails, model: type[Model]) -> str:
    kind, where, context = fault["type"], fault["loc"], fault.get("ctx", {})
    message = fault["msg"]
    if kind == "extra_forbidden":
        return f"unknown key{suggest(str(where[-1]), keys_at(model, where[:-1]))}"
    if kind == "missing":
        return "is required and is not there"
    if kind == "union_tag_not_found":
        return "needs a key `kind`"
    if kind == "union_tag_invalid":
        tags = re.findall(r"'([^']*)'", context["expected_tags"])
        tag = str(context["tag"])
        return f"kind {shorten(tag)} is not one of {', '.join(tags)}{suggest(tag, tags)}"
    if kind in ("literal_error", "enum"):
        words = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        found = fault["input"]
        near = suggest(found, words) if isinstance(found, str) else ""
        return f"{shorten(found)} is not one of {', '.join(words)}{near}"
    if kind.startswith("value_error"):
        return message.removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}, found {shorten(fault['input'])}"


def keys_at(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """The keys that the table at `where`, a place as pydantic names it, may have."""
    at: Any = model
    for part in where:
        at = _step(at, part)
    tables = [table for table in _members(at) if _is_model(table)]
    return [key for table in tables for key in _fields(table)]


def _step(annotation: Any, part: int | str) -> Any:
    """The type of what lies at `part` of a value of the type `annotation`."""
    for member in _members(annotation):
        origin, arguments = get_origin(member), get_args(member)
        if origin is dict:
            return arguments[1]
        if origin is tuple and isinstance(part, int):
            return arguments[0]
        if _is_model(member):
            if part in _fields(member):
                return _fields(member)[str(part)]
            if part in _tags(member):
                return member
    return None


def _members(annotation: Any) -> tuple[Any, ...]:
    """The types that a type stands for, `Annotated` and unions taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return tuple(one for member in get_args(annotation) for one in _members(member))
    return (annotation,)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Type by key, for the keys that a file can hold."""
    return {
        field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if not field.exclude
    }


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    """The values of `kind` by which a union knows the model."""
    kind = _fields(model).get("kind")
    return get_args(kind) if get_origin(kind) is Literal else ()
