"""Code of an installed distribution that somebody edited is named; what tools do is not."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from researchenvbench.standalone.look.distributions import changed
from researchenvbench.standalone.look.installed import Installed
from researchenvbench.standalone.look.paths import Root

if TYPE_CHECKING:
    from pathlib import Path


class Site:
    """A site-packages folder of one prefix."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.folder = prefix / "lib" / "python3.11" / "site-packages"
        self.folder.mkdir(parents=True)
        (prefix / "bin").mkdir()

    def install(self, name: str, files: dict[str, str]) -> None:
        """As an installer does: write the files, and what was written into RECORD."""
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        lines = []
        for path, text in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            lines.append(f"{path},sha256={digest.rstrip(b'=').decode()},{len(text)}")
        (info / "RECORD").write_text("\n".join([*lines, f"{info.name}/RECORD,,", ""]))

    def changed(self, within: Path | None = None) -> list[tuple[str, list[str]]]:
        """Distribution and files of what differs."""
        layout = {"sites": [str(self.folder)], "prefixes": [str(self.prefix)]}
        found = changed(Root(), layout, str(within or self.prefix))
        return [(one["folder"].rpartition("/")[2], one["files"]) for one in found]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site(tmp_path / "env")
    found.install("one", {"one/__init__.py": "a = 1\n", "../../../bin/one": "#!/env/python\n"})
    found.install("two", {"two.py": "b = 1\n", "shared/__init__.py": "# of two\n"})
    return found


def test_what_was_installed_is_as_listed(site: Site) -> None:
    assert site.changed() == []


def test_an_edited_module_and_an_edited_script_are_named(site: Site) -> None:
    (site.folder / "one" / "__init__.py").write_text("a = 2\n")
    (site.prefix / "bin" / "one").write_text("#!/env/python\nprint()\n")
    assert site.changed() == [("one-1.0.dist-info", ["../../../bin/one", "one/__init__.py"])]


def test_a_file_of_two_distributions_is_that_of_the_last(site: Site) -> None:
    site.install("three", {"shared/__init__.py": "# of three\n"})
    assert site.changed() == []
    (site.folder / "shared" / "__init__.py").write_text("# of nobody\n")
    assert [files for _, files in site.changed()] == [["shared/__init__.py"]]


def test_what_conda_rewrote_is_what_conda_lists(site: Site) -> None:
    text = "#!/elsewhere/python\n"
    (site.prefix / "bin" / "one").write_text(text)
    entry = {"_path": "bin/one", "sha256_in_prefix": hashlib.sha256(text.encode()).hexdigest()}
    (site.prefix / "conda-meta").mkdir()
    (site.prefix / "conda-meta" / "one.json").write_text(
        json.dumps({"paths_data": {"paths": [entry]}})
    )
    assert site.changed() == []


def test_what_is_missing_or_lies_elsewhere_is_no_subject(site: Site, tmp_path: Path) -> None:
    (site.folder / "two.py").unlink()
    (site.folder / "one" / "__init__.py").write_text("a = 2\n")
    assert site.changed(within=tmp_path / "other") == []
    assert site.changed() == [("one-1.0.dist-info", ["one/__init__.py"])]


@pytest.mark.parametrize(
    "name",
    [
        "one/__init__.cpython-311-x86_64-linux-gnu.so",
        "one/__init__.abi3.so",
        "two.so",
        "two/__init__.py",
        "two/__init__.pyc",
        "two/__init__.cpython-311-x86_64-linux-gnu.so",
    ],
)
def test_what_comes_before_a_listed_source_must_be_listed_too(site: Site, name: str) -> None:
    place = site.folder / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("")
    owner = "one-1.0.dist-info" if name.startswith("one") else "two-1.0.dist-info"
    assert site.changed() == [(owner, [name])]


def test_what_comes_before_a_source_and_is_listed_is_as_listed(site: Site) -> None:
    extension = "four/fast.cpython-311-x86_64-linux-gnu.so"
    site.install("four", {"four/fast.py": "", extension: "", "two/__init__.py": ""})
    assert site.changed() == []


def test_an_extension_that_conda_lists_is_as_listed(site: Site) -> None:
    name = "one/__init__.cpython-311-x86_64-linux-gnu.so"
    (site.folder / name).write_text("")
    entry = {"_path": f"lib/python3.11/site-packages/{name}", "sha256": "0"}
    (site.prefix / "conda-meta").mkdir()
    (site.prefix / "conda-meta" / "one.json").write_text(
        json.dumps({"paths_data": {"paths": [entry]}})
    )
    assert site.changed() == []


def test_what_does_not_come_before_a_source_is_no_subject(site: Site) -> None:
    for name in ("one.so", "two.pyc", "two.pyi", "twofold.so", "one/libthree.so.1"):
        (site.folder / name).write_text("")
    (site.folder / "two").mkdir()
    (site.folder / "two" / "data.json").write_text("")
    assert site.changed() == []


@pytest.mark.parametrize(
    "line", ["a" * 200_000 + ",sha256=0,0", "a\rb,sha256=0,0", "a\0,sha256=0,"]
)
def test_a_line_that_no_installer_writes_does_not_end_the_look(site: Site, line: str) -> None:
    record = site.folder / "one-1.0.dist-info" / "RECORD"
    record.write_bytes(f"{line}\n".encode() + record.read_bytes())
    assert site.changed() == []
    (site.folder / "one" / "__init__.py").write_text("a = 2\n")
    assert site.changed() == [("one-1.0.dist-info", ["one/__init__.py"])]


def test_a_name_that_is_no_text_is_listed_by_its_bytes(site: Site) -> None:
    name = os.fsdecode(b"x\xff.pth")
    (site.folder / name).write_text("import os\n")
    path, installed = str(site.folder / name), Installed(Root(), [])
    assert not installed.lists(path, str(site.folder))
    assert installed.says(path, str(site.folder), b"") is None
    with (site.folder / "one-1.0.dist-info" / "RECORD").open("ab") as stream:
        stream.write(os.fsencode(name) + b",sha256=0,0\n")
    installed = Installed(Root(), [])
    assert installed.lists(path, str(site.folder))
    found = installed.says(path, str(site.folder), b"")
    assert found == {"owner": "one-1.0.dist-info", "same": False, "editable": False}
