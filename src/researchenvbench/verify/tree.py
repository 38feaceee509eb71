"""Where a repository's own modules lie, by the names of its files alone.

A name is first party when the import would find the repository's own code from the
importing file: in its folder, in one of the folders above it, or in `src/` of one of those.
- Within a package that is so only where the file is run as a script, so there the whole name
  has to be found: `openai.types` beside a subpackage `openai` means the installed one unless
  the subpackage has `types`.
- A folder without `__init__.py` counts only where the import takes something that lies in it:
  any installed package of that name wins over such a folder, so `import datasets` beside a
  folder of scripts called `datasets` means the installed one.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .statements import Statement

#: What Python, or a build of the repository, makes a module of.
MODULE_SUFFIXES = (".py", ".pyi", ".so", ".pyd", ".pyx")


class Tree:
    """The modules among the files of a repository."""

    def __init__(self, files: Iterable[str]) -> None:
        #: Path without suffix -> the file; `a/b/__init__` for a package.
        self._modules: dict[str, str] = {}
        self._folders: set[str] = set()
        for file in sorted(files, key=lambda file: not file.endswith(".py")):
            path = PurePosixPath(file)
            if path.suffix not in MODULE_SUFFIXES:
                continue
            # An extension module is called `name.cpython-311-x86_64-linux-gnu.so`.
            self._modules.setdefault(str(path.with_name(path.name.partition(".")[0])), file)
            self._folders.update(str(folder) for folder in path.parents)

    def is_first_party(self, file: str, statement: Statement) -> bool:
        """Whether `statement` in `file` means the repository's own code."""
        if statement.level:
            return True
        for base in self._bases(file):
            place = _join(base, statement.top)
            found = self._regular(place)
            # `tracker.py` that imports `tracker` means another; a package may import itself.
            itself = found == file and not file.endswith("__init__.py")
            if (
                found
                and not itself
                and (not self._in_package(base) or self._whole(base, statement))
            ):
                return True
            if place in self._folders and self._reaches_into(base, statement):
                return True
        return False

    def hides(self, file: str, name: str) -> bool:
        """Whether a checker would take something of the repository's for the module `name`.

        True of the file itself, and of folders without a module of that name.
        """
        return any(
            self._regular(_join(base, name)) or _join(base, name) in self._folders
            for base in self._bases(file)
        )

    def reached(
        self, file: str, statement: Statement, *, also: Sequence[str] = ()
    ) -> Iterator[str]:
        """The repository's files that `statement` in `file` executes or may execute.

        `also` are folders to search first, such as that of the script that was started.
        """
        if statement.level:
            folder = PurePosixPath(file)
            for _ in range(statement.level):
                folder = folder.parent
            base = str(folder)
            if package := self._modules.get(_join(base, "__init__")):
                yield package
            yield from self._along(base, statement)
            return
        for base in (*also, *self._bases(file)):
            place = _join(base, statement.top)
            if self._regular(place) or place in self._folders:
                yield from self._along(base, statement)
                return

    def file_of(self, dotted: str) -> str | None:
        """The file that `python -m dotted` would run from the repository's root or `src/`."""
        for base in (".", "src"):
            place = _join(base, dotted.replace(".", "/"))
            found = self._modules.get(_join(place, "__main__")) or self._modules.get(place)
            if found:
                return found
        return None

    def _along(self, base: str, statement: Statement) -> Iterator[str]:
        place = base
        for part in statement.module.split(".") if statement.module else ():
            place = _join(place, part)
            found = self._regular(place)
            if found:
                yield found
        for name in statement.names:
            found = self._regular(_join(place, name))
            if found:
                yield found

    def _in_package(self, folder: str) -> bool:
        return _join(folder, "__init__") in self._modules

    def _whole(self, base: str, statement: Statement) -> bool:
        place = _join(base, statement.module.replace(".", "/"))
        return bool(self._regular(place)) or place in self._folders

    def _reaches_into(self, base: str, statement: Statement) -> bool:
        if "." in statement.module and self._whole(base, statement):
            return True
        place = _join(base, statement.module.replace(".", "/"))
        below = (_join(place, name) for name in statement.names)
        return any(self._regular(path) or path in self._folders for path in below)

    def _regular(self, place: str) -> str | None:
        """The file of the module or package at a path without suffix."""
        return self._modules.get(_join(place, "__init__")) or self._modules.get(place)

    def _bases(self, file: str) -> Iterator[str]:
        for folder in PurePosixPath(file).parents:
            yield str(folder)
            source = _join(str(folder), "src")
            if source in self._folders:
                yield source


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"
