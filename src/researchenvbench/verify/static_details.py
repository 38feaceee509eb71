"""The numbers of C0, as a record holds them in the details of its result."""

from __future__ import annotations

from ..stored import Stored


class MissingModule(Stored):
    """A third-party module that the environment does not have."""

    name: str
    required: bool  #: some unresolved import of it is not optional
    decides: bool  #: required in a file that the verdict looks at
    modules: tuple[str, ...]  #: full names that do not resolve, such as `a.b`
    files: tuple[str, ...]
    why: str = ""  #: where it is not simply absent


class UnparsableFile(Stored):
    """A file whose imports are unknown."""

    file: str
    error: str


class StaticDetails(Stored):
    """The numbers of C0."""

    files: int  #: tracked Python files, read and not
    unparsable: tuple[UnparsableFile, ...] = ()
    total_paper: int  #: the paper's denominator
    missing_paper: int | None = None  #: its numerator: reportMissingImports alone
    missing_paper_names: tuple[str, ...] = ()
    third_party: int  #: distinct third-party modules, our denominator
    missing: tuple[MissingModule, ...] = ()  #: our numerator, one a module
    importable: tuple[str, ...] = ()  #: pyright misses them, the interpreter finds them
    first_party_missing: tuple[str, ...] = ()
    scope_files: int  #: how many of the files the verdict looks at
    checker: str = "pyright"
    checker_version: str | None = None
    checker_s: float = 0.0
    python_version: str | None = None
