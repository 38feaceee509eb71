"""`reb assets` as a user calls it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from researchenvbench.cli.assets import command

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from .conftest import Tasks
    from .servers import Server

CONTENT = b"0123456789" * 100


def reb(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)


@pytest.fixture
def suite(tasks: Tasks, server: Server) -> Path:
    """A suite of one task with a file of a server, and a model whose stand-in can be made."""
    server.files["/data.bin"] = CONTENT
    tasks.script("out.mkdir(); (out / 'config.json').write_text('x')")
    digest = hashlib.sha256(CONTENT).hexdigest()
    tasks.task(
        f'[assets.data]\nkind = "url"\nurl = "{server.address}/data.bin"\nsha256 = "{digest}"\n'
        'licence = "CC0-1.0"\n'
        '[assets.net]\nkind = "hub"\nrepo = "o/net"\ngated = true\n'
        '[assets.net.stand_in]\nscript = "make.py"\n'
    )
    return tasks.folder.parent


def test_list_shows_what_is_here(suite: Path) -> None:
    assert [row["here"] for row in json.loads(reb("list", str(suite), "--json").output)] == [[], []]
    done = reb("fetch", str(suite))
    assert done.return_value == 0
    assert "2 of 2 assets are here" in done.output
    data, net = json.loads(reb("list", str(suite), "--json").output)
    assert (data["here"], data["bytes"], data["licence"]) == (["real"], 1000, "CC0-1.0")
    assert (net["here"], net["pinned"], net["gated"]) == (["stand-in"], False, True)
    assert data["stages"] == ["cpu"]
    table = reb("list", str(suite), "--only", "reads").output
    assert "stand-in" in table
    assert "CC0-1.0" in table


def test_fetch_says_what_could_not_be_had(suite: Path) -> None:
    done = reb("fetch", str(suite), "--assets", "real")
    assert done.return_value == 1
    assert "reads: net: its original is not pinned" in done.output
    assert "git ls-remote" in done.output
    assert "1 of 2 assets are here" in done.output


def test_check_finds_a_recipe_that_is_not_reproducible(suite: Path, tasks: Tasks) -> None:
    assert reb("fetch", str(suite), "--check").return_value == 0
    tasks.script("import time; out.mkdir(); (out / 'a').write_text(str(time.time_ns()))")
    assert reb("fetch", str(suite)).return_value == 0
    done = reb("fetch", str(suite), "--check")
    assert done.return_value == 1
    assert "not reproducible" in done.output


def test_quiet_says_only_the_end(suite: Path) -> None:
    assert reb("fetch", str(suite), "--quiet").output == "2 of 2 assets are here\n"


def test_remove(suite: Path, cache: Path) -> None:
    reb("fetch", str(suite))
    assert "0.0 MB" in reb("remove", "--unused").output
    assert len(list(cache.glob("objects/*"))) == 2
    reb("remove")
    assert not list(cache.glob("objects/*"))


def test_a_suite_without_assets(tmp_path: Path) -> None:
    folder = tmp_path / "plain" / "one"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(
        'schema = 1\nname = "one"\ndomain = "x"\n[source]\nkind = "folder"\npath = "."\n'
    )
    assert "reads an asset" in reb("list", str(folder.parent)).output
    assert "0 of 0 assets" in reb("fetch", str(folder.parent)).output
