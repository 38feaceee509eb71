"""Keys of providers: named in job files and read by who needs them, never passed around."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from ..errors import INSTALL_AGENTS, HostError, RebError
from ..stored import require_file

_FORMS = "write env:NAME, file:PATH or keyring:SERVICE/USER"
#: Shorter ones are words such as EMPTY that servers without keys want; no secrets.
_SECRET_FROM = 8


class Key:
    """A key. It shows itself by `reveal` alone: not printed, not compared, not pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str, *, source: str = "") -> None:
        """Take a key; white space around it is dropped.

        Raises:
            RebError: empty, or with characters that no header can carry.
        """
        text = text.strip()
        named = f" of {source}" if source else ""
        if not text:
            raise RebError(f"the key{named} is empty", advice="put the provider's key there")
        if not all("!" <= character <= "~" for character in text):
            raise RebError(
                f"the key{named} has a space, a line break or a letter that no key has",
                advice="put the provider's key there, and nothing else",
            )
        self._text = text

    def reveal(self) -> str:
        """The key itself, for the header that carries it."""
        return self._text

    @property
    def is_secret(self) -> bool:
        """False for a word that stands in for a key where none is needed."""
        return len(self._text) >= _SECRET_FROM

    def __repr__(self) -> str:
        return "Key(…)"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a key is not written down: name its source instead")


@dataclass(frozen=True)
class KeySource:
    """Where a key is; this may be written down."""

    kind: Literal["env", "file", "keyring"]
    name: str

    @classmethod
    def parse(cls, text: str) -> KeySource:
        """Read `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`.

        Raises:
            RebError: it is none of these. The text is not shown: it may be a key.
        """
        kind, _, name = text.partition(":")
        if kind not in ("env", "file", "keyring") or not name:
            raise RebError(
                "what names a key is none of the forms that are known (it is not shown here, "
                "for it may be the key itself)",
                advice=_FORMS,
            )
        if kind == "env" and not name.isidentifier():
            raise RebError("env: is followed by no name of a variable", advice=_FORMS)
        if kind == "keyring" and not all(name.rpartition("/")[::2]):
            raise RebError(f"keyring:{name} names no service or no user", advice=_FORMS)
        return cls(kind, name)  # type: ignore[arg-type]  # narrowed by the test above

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    def read(self) -> Key:
        """The key.

        Raises:
            RebError: there is none, or it cannot be read.
            HostError: this host has no keyring.
        """
        text = {"env": self._from_variable, "file": self._from_file, "keyring": self._from_keyring}[
            self.kind
        ]()
        return Key(text, source=str(self))

    def _from_variable(self) -> str:
        text = os.environ.get(self.name)
        if text is None:
            raise RebError(
                f"the variable {self.name}, which should hold the key, is not set",
                advice=f"export {self.name}=…, or name another place: {_FORMS}",
            )
        return text

    def _from_file(self) -> str:
        path = Path(self.name).expanduser()
        require_file(path)
        try:
            with path.open("rb") as stream:
                status = os.fstat(stream.fileno())
                # Who does not own it, as with a secret that an engine mounts, cannot change this.
                if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                    raise RebError(
                        f"{path}: other users of this host may read or write the key",
                        advice=f"chmod 600 {path}",
                    )
                return stream.read(1 << 16).decode()
        except OSError as error:
            raise RebError(
                f"{path}, which should hold the key, cannot be read: {error.strerror}",
                advice="write the key into it, or name another place",
            ) from error
        except UnicodeDecodeError as error:
            raise RebError(f"{path} holds no text", advice="write the key into it") from error

    def _from_keyring(self) -> str:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ImportError as error:
            raise HostError(
                f"{self} needs the package keyring, which is not installed",
                advice=f"{INSTALL_AGENTS}; or name another place",
            ) from error
        service, _, user = self.name.rpartition("/")
        try:
            text = keyring.get_password(service, user)
        except (KeyringError, OSError, RuntimeError) as error:
            raise HostError(
                f"{self}: the keyring of this host cannot be read: {error}",
                advice="a host without a desktop often has none: use file:PATH or env:NAME",
            ) from error
        if text is None:
            raise RebError(
                f"the keyring has nothing for {self}",
                advice=f"keyring set {service} {user}",
            )
        return text
