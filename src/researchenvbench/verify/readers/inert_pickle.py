"""Reads the pickle within a torch checkpoint without running anything that it names.

A pickle is a small program: it names functions and classes and has them called. Here every
name is resolved to an inert stand-in, so that calling it only notes the arguments; nothing
is imported. The exceptions are torch's own functions that rebuild tensors, which are
replaced by ones that note a tensor's shape. A pickle that names what can only serve to run
code is refused. What the pickle costs in memory and time is bounded by the process in which
this runs (`contained`).

The names and arguments are those of `torch/_utils.py` and `torch/serialization.py`, read in
torch 2.13.
"""

from __future__ import annotations

import collections
import pickle
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from .wanted import Unreadable
from .wording import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of an element, by the name of its storage class or its dtype.
ELEMENT_BYTES = {
    "DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
    "LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1,
    "BoolStorage": 1, "ComplexFloatStorage": 8, "ComplexDoubleStorage": 16,
    "QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4, "UntypedStorage": 1,
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "uint16": 2,
    "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
#: Modules that a checkpoint has no reason to name, and the builtins that run code. Nothing
#: that is named gets run here; but it would be by whoever loads the file.
_RUNS_CODE = {
    "os", "posix", "nt", "pty", "subprocess", "sys", "importlib", "runpy", "shutil", "socket",
    "ctypes", "marshal", "pdb", "builtins.eval", "builtins.exec", "builtins.compile",
    "builtins.__import__", "builtins.breakpoint",
}  # fmt: skip
#: Plain containers; making one runs nothing.
_CONTAINERS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytearray"): bytearray,
    ("torch", "Size"): tuple,
}
_NODES_LIMIT = 2_000_000


@dataclass(frozen=True)
class StoredNumbers:
    """A block of numbers that tensors are views of."""

    key: str
    kind: str  #: storage class or dtype, such as FloatStorage
    count: int

    @property
    def size_bytes(self) -> int:
        """Its size, or -1 where the kind of number is not known."""
        return self.count * ELEMENT_BYTES[self.kind] if self.kind in ELEMENT_BYTES else -1


@dataclass(frozen=True)
class StoredTensor:
    """A tensor: a view of stored numbers."""

    storage: StoredNumbers
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    kind: str

    @property
    def elements(self) -> int:
        """How many numbers it shows."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def end(self) -> int:
        """One past the last stored number that it shows."""
        if not self.elements:
            return self.offset
        steps = zip(self.shape, self.stride, strict=True)
        return self.offset + sum((length - 1) * step for length, step in steps) + 1

    @property
    def contiguous(self) -> bool:
        """Its numbers lie one after another."""
        expected = 1
        for length, step in reversed(list(zip(self.shape, self.stride, strict=True))):
            if length != 1 and step != expected:
                return False
            expected *= length
        return True


class StandIn:
    """An object of a class that is not imported. It takes everything and does nothing."""

    name = "?"

    state: Any
    items: list[Any]

    # Not in __init__, which unpickling leaves out.
    def __new__(cls, *_: Any, **__: Any) -> StandIn:
        """An object without content; the arguments are dropped."""
        made = super().__new__(cls)
        made.state, made.items = None, []
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def append(self, value: Any) -> None:
        """As a list would be filled."""
        self.items.append(value)

    def extend(self, values: Any) -> None:
        """As a list would be filled."""
        self.items.extend(values)

    def add(self, value: Any) -> None:
        """As a set would be filled."""
        self.items.append(value)


class InertUnpickler(pickle.Unpickler):
    """Loads a pickle with a stand-in for every name in it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, encoding="utf-8")
        self.storages: dict[str, StoredNumbers] = {}
        self.classes: set[str] = set()
        self._stand_ins: dict[str, type[StandIn]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name."""
        # `__builtin__` and `__main__` as Python 2 and scripts write them.
        module = "builtins" if module == "__builtin__" else module
        full = f"{module}.{name}"
        if full in _RUNS_CODE or module.split(".")[0] in _RUNS_CODE:
            raise Unreadable(f"a pickle that names {shorten(full)}, which would run code")
        if (module, name) in _CONTAINERS:
            return _CONTAINERS[module, name]
        if module == "torch._utils" and name in _REBUILD:
            return _REBUILD[name]
        if full not in self._stand_ins:
            self._stand_ins[full] = type("StandIn", (StandIn,), {"name": full})
            if module.split(".")[0] not in ("torch", "collections", "builtins", "numpy"):
                self.classes.add(full)
        return self._stand_ins[full]

    def persistent_load(self, pid: Any) -> Any:
        """A reference to stored numbers: ('storage', class, key, device, count, …)."""
        try:
            tag, kind, key, _, count = pid[:5]
            name = getattr(kind, "name", str(kind)).split(".")[-1]
            if tag != "storage" or not isinstance(count, int) or count < 0:
                raise ValueError
        except (TypeError, ValueError) as error:
            raise Unreadable(f"an unknown kind of reference: {shorten(repr(pid))}") from error
        return self.storages.setdefault(str(key), StoredNumbers(str(key), name, count))


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> StoredTensor:
    numbers = (offset, *shape, *stride)
    if not isinstance(storage, StoredNumbers) or len(shape) != len(stride):
        raise Unreadable("a tensor without stored numbers")
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise Unreadable("a tensor of an impossible shape")
    return StoredTensor(storage, offset, tuple(shape), tuple(stride), storage.kind)


def _tensor_v3(*arguments: Any) -> StoredTensor:
    """As `_tensor`, of numbers whose kind is the seventh argument, not the storage's."""
    storage, offset, shape, stride, _, _, dtype = arguments[:7]
    tensor = _tensor(storage, offset, shape, stride)
    kind = getattr(dtype, "name", "?").split(".")[-1]
    numbers = StoredNumbers(storage.key, kind, storage.count // ELEMENT_BYTES.get(kind, 1))
    return StoredTensor(numbers, tensor.offset, tensor.shape, tensor.stride, kind)


def _parameter(data: Any, *_: Any) -> Any:
    return data


_REBUILD = {
    "_rebuild_tensor": _tensor,
    "_rebuild_tensor_v2": _tensor,
    "_rebuild_tensor_v3": _tensor_v3,
    "_rebuild_parameter": _parameter,
    "_rebuild_parameter_with_state": _parameter,
}
#: Parts of a module's state that its own state_dict leaves out of names.
_UNNAMED = {"_parameters", "_buffers", "_modules"}


def load(stream: IO[bytes]) -> tuple[Any, InertUnpickler]:
    """The next pickle of a stream, and what it refers to.

    Raises:
        Unreadable: it is damaged, or would run code.
    """
    unpickler = InertUnpickler(stream)
    try:
        return unpickler.load(), unpickler
    except (
        pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, KeyError,
        IndexError, ImportError, RecursionError, OverflowError, UnicodeDecodeError,
    ) as error:  # fmt: skip
        # All of these are what a damaged pickle makes of its reader.
        raise Unreadable(f"a damaged pickle: {shorten(str(error) or repr(error))}") from error


def named(document: Any) -> Iterator[tuple[str, Any]]:
    """Every value below a document with its dotted name, as a state_dict would name it.

    Raises:
        Unreadable: there are too many to look at.
    """
    stack: list[tuple[str, Any]] = [("", document)]
    seen: set[int] = set()
    visited = 0
    while stack:
        name, value = stack.pop()
        visited += 1
        if visited > _NODES_LIMIT:
            raise Unreadable(f"a checkpoint of more than {_NODES_LIMIT} values")
        if name:
            yield name, value
        if isinstance(value, StoredTensor | str | bytes | int | float) or value is None:
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        stack.extend((_join(name, key), child) for key, child in reversed(list(_children(value))))


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(i), child) for i, child in enumerate(value))
    elif isinstance(value, StandIn):
        for i, item in enumerate(value.items):
            pair = isinstance(item, tuple) and len(item) == 2
            yield (str(item[0]), item[1]) if pair else (str(i), item)
        if value.state is not None:
            yield "", value.state


def _join(name: str, key: str) -> str:
    if key in _UNNAMED or not key:
        return name
    return f"{name}.{key}" if name else shorten(key, 200)
