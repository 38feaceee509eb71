"""Keys are named, read where they are, and show themselves to nobody."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import types
from typing import TYPE_CHECKING

import pytest

from researchenvbench.errors import HostError, RebError
from researchenvbench.relay import Key, KeySource, Provider

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-test-0123456789"


def test_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    source = KeySource.parse("env:A_KEY")
    monkeypatch.setenv("A_KEY", f"{SECRET}\n")
    assert source.read().reveal() == SECRET
    assert str(source) == "env:A_KEY"
    monkeypatch.setenv("A_KEY", " ")
    with pytest.raises(RebError, match="the key of env:A_KEY is empty"):
        source.read()
    monkeypatch.delenv("A_KEY")
    with pytest.raises(RebError, match="A_KEY, which should hold the key, is not set"):
        source.read()


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    source = KeySource.parse("file:~/key")
    path = tmp_path / "key"
    with pytest.raises(RebError, match="cannot be read: No such file"):
        source.read()
    path.write_text(f"{SECRET}\n")
    path.chmod(0o640)
    with pytest.raises(RebError, match=f"other users.*\n  chmod 600 {path}"):
        source.read()
    path.chmod(0o600)
    assert source.read().reveal() == SECRET
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RebError, match="holds no text"):
        source.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_that_an_engine_mounts_is_another_users(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(SECRET)
    path.chmod(0o444)
    os.chown(path, 12345, 12345)
    assert KeySource.parse(f"file:{path}").read().reveal() == SECRET


def test_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend of our own: a test may not open the developer's."""
    keyring = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend

    class Backend(KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return SECRET if (service, username) == ("a/b", "me") else None

        def set_password(self, service: str, username: str, password: str) -> None: ...

        def delete_password(self, service: str, username: str) -> None: ...

    from keyring.backends.fail import Keyring as Absent

    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Backend())
        assert KeySource.parse("keyring:a/b/me").read().reveal() == SECRET
        with pytest.raises(RebError, match="nothing for keyring:a/you\n  keyring set a you"):
            KeySource.parse("keyring:a/you").read()
        keyring.set_keyring(Absent())
        with pytest.raises(HostError, match="the keyring of this host cannot be read"):
            KeySource.parse("keyring:a/you").read()
    finally:
        keyring.set_keyring(before)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(HostError, match=r"pip install -e '\.\[agents\]'; or name another place"):
        KeySource.parse("keyring:a/you").read()


@pytest.mark.parametrize("text", [SECRET, "env:", f"env:{SECRET}", "keyring:x", "keyring:/x", ""])
def test_what_names_no_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(RebError) as caught:
        KeySource.parse(text)
    assert SECRET not in str(caught.value)
    assert "env:NAME" in str(caught.value)


@pytest.mark.parametrize("text", ["a b", "a\nb", "schlüssel"])
def test_what_no_header_carries_is_no_key(text: str) -> None:
    with pytest.raises(RebError, match="no key has") as caught:
        Key(text, source="env:A_KEY")
    assert text not in str(caught.value)


def test_a_key_shows_itself_to_nobody() -> None:
    key = Key(SECRET)
    shown = [repr(key), str(key), f"{key}", f"{[key]}", f"{types.SimpleNamespace(key=key)}"]
    assert not [text for text in shown if SECRET in text]
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not written down"):
            write(key)
    with pytest.raises(TypeError):
        vars(key)
    assert key.is_secret
    assert not Key("EMPTY").is_secret


@pytest.mark.parametrize(
    ("wire", "upstream", "model", "words"),
    [
        ("openai-chats", "https://x.org/v1", "m", "did you mean 'openai-chat'"),
        ("openai-chat", "x.org", "m", "not an address"),
        ("openai-chat", "ftp://x.org", "m", "not an address"),
        ("openai-chat", "https://x.org/?a=1", "m", "no query"),
        ("openai-chat", f"https://me:{SECRET}@x.org", "m", "has credentials in it"),
        ("openai-chat", "https://x.org/v1", "", "no model"),
    ],
)
def test_a_provider_that_is_none(wire, upstream, model, words) -> None:
    with pytest.raises(RebError, match=words) as caught:
        Provider(wire, upstream, model)
    assert SECRET not in str(caught.value)
