"""How facts are kept on disk: models as JSON files, each written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_serializer

from .errors import RebError, RecordError

if TYPE_CHECKING:
    from pydantic import SerializerFunctionWrapHandler


class Stored(BaseModel):
    """Base of what is written to disk. Unknown keys of a newer version are kept out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_serializer(mode="wrap", when_used="json")
    def _as_json(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = _plain(handler(self))
        return data

    def save(self, path: Path) -> None:
        """Write as JSON, atomically: a reader sees the old file or the whole new one."""
        write_atomically(path, self.model_dump_json(indent=1, by_alias=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read from JSON.

        Raises:
            RecordError: absent, unreadable, of a newer schema, or not such a record.
        """
        try:
            text = path.read_bytes()
            cls._refuse_newer(path, text)
            return cls.model_validate_json(text)
        except OSError as error:
            raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RecordError(
                f"{path}: not a {cls.__name__}: {where}: {first['msg']}",
                advice="it was written by another version, or damaged; remove it to make it anew",
            ) from error

    @classmethod
    def _refuse_newer(cls, path: Path, text: bytes) -> None:
        """Refuse what a newer version wrote: its words may mean something else."""
        field = cls.model_fields.get("schema_version")
        if field is None:
            return
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return  # the validation that follows says what is wrong with it
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, int) and schema > field.default:
            raise RecordError(
                f"{path}: was written by a newer version: schema {schema}, "
                f"and this one reads up to {field.default}",
                advice="read it with the version that wrote it, or a newer one",
            )


def _plain(value: Any) -> Any:
    """`value` with what no UTF-8 text can hold made readable.

    The name of a file may hold any byte, which may not keep a record from being written.
    """
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub(_hexadecimal, value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


_SURROGATE = re.compile("[\ud800-\udfff]")


def _hexadecimal(match: re.Match[str]) -> str:
    code = ord(match[0])
    # As os.fsdecode has them: U+DC80 to U+DCFF stand for the bytes 80 to FF.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` by way of a temporary file beside it, flushed to the disk."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files for the owner alone; records are for everybody who may read.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_file(path: Path) -> None:
    """See that what a user names is no pipe or device, from which reading might never end.

    What is not there is left to who reads it.

    Raises:
        RebError: it is there, and no file.
    """
    if path.exists() and not path.is_file():
        raise RebError(f"{path}: is no file", advice="name a file")
