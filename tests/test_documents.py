"""The documents are true where a program can tell: what they name is there, all kinds are told."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from researchenvbench.attempt import Finding, FindingKind
from researchenvbench.cli import group

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "researchenvbench"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
#: What is a path of this repository and not of a box, a run or a host: with a folder of ours
#: before it, or a module or script by its name.
_FOLDERS = {"docs", "tests", "src", "scripts", "benchmarks"} | {
    path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"
}
_FILE = re.compile(r"[\w.-]+\.(py|toml|md|json|j2)|Containerfile|Makefile|\.ci/run|\.importlinter")
#: Files that a reader's own run, task or host has, and this repository has not.
_OF_OTHERS = {"build.json", "record.json", "report.json", "index.json", "pyproject.toml"}


def links(text: str) -> list[str]:
    """Targets within this repository, without their anchors."""
    targets = [target.partition("#")[0] for target in _LINK.findall(text)]
    return [target for target in targets if target and "://" not in target]


def named_paths(text: str) -> list[str]:
    """What stands in backticks and is written as a path of this repository."""
    found = []
    for code in _CODE.findall(text):
        if re.search(r"[\s*<>{}=:$~…]|^/|[A-Z]{3,}", code):
            continue  # a command, a pattern, a place of a host, or one with a name to fill in
        if "/" in code:
            if code.partition("/")[0] in _FOLDERS | {".ci"}:
                found.append(code)
        elif _FILE.fullmatch(code) and code not in _OF_OTHERS:
            found.append(code)
    return found


def is_there(path: str, files: frozenset[str]) -> bool:
    """From the repository's root, from the package, or a file that has this name anywhere."""
    if "/" not in path:
        return any(file.rpartition("/")[2] == path for file in files)
    return (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.fixture(scope="module")
def files() -> frozenset[str]:
    """What this repository holds, without what is made in it."""
    skipped = {".git", ".venv", "build", "dist", "runs", "shared", "node_modules", "__pycache__"}
    found = set()
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in skipped]
        found |= {str((Path(folder) / name).relative_to(ROOT)) for name in names}
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_what_a_page_names_is_there(page: Path, files: frozenset[str]) -> None:
    text = page.read_text()
    broken = [link for link in links(text) if not (page.parent / link).exists()]
    assert not broken
    assert not [path for path in named_paths(text) if not is_there(path, files)]
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_what_is_gone_would_be_seen(files: frozenset[str]) -> None:
    text = (
        "`sandbox/gone.py`, `gone.py`, `docs/protocol.md`, `pyramid.py`, `reb run`, `/etc/x.toml`"
    )
    named = named_paths(text)
    assert named == ["sandbox/gone.py", "gone.py", "docs/protocol.md", "pyramid.py"]
    assert [path for path in named if not is_there(path, files)] == ["sandbox/gone.py", "gone.py"]
    assert links("[a](b.md#c), [d](https://example.org/e), [f](#g)") == ["b.md"]


def test_the_tree_of_the_architecture_names_folders_and_modules_that_are_there(
    files: frozenset[str],
) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    tree = page.partition("    src/researchenvbench/\n")[2].partition("\n\n")[0]
    named = re.findall(r"^ +([\w/]+/) ", tree, re.MULTILINE)
    folders = {f"/{Path(file).parent}/" for file in files}
    assert len(named) > 10
    assert not [name for name in named if not any(f"/{name}" in folder for folder in folders)]
    modules = set(re.findall(r"[\w*]+\.py\b", tree)) - {"doctor*.py"}
    assert not [name for name in modules if not is_there(name, files)]


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    checked = (ROOT / ".importlinter").read_text().partition("layers =\n")[2]
    layers = checked.partition("#")[0].strip()
    assert layers.startswith("cli\n")
    assert layers in (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize(
    "package", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name
)
def test_a_package_names_modules_that_it_has(package: Path) -> None:
    said = ast.get_docstring(ast.parse(package.read_text())) or ""
    named = re.findall(r"^(\w+\.\w+)  ", said, re.MULTILINE) + re.findall(r"(\w+\.py)\b", said)
    assert not [name for name in named if not (package.parent / name).exists()]


def test_every_target_of_make_is_one() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        said = set(re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert said <= targets, page.name


# --- kinds of findings -------------------------------------------------------------------


def rows_of_findings() -> list[list[str]]:
    """The cells of every row about a finding, in "Integrity"."""
    page = (ROOT / "docs" / "protocol.md").read_text().partition("## Integrity")[2]
    rows = [line.strip(" |").split(" | ") for line in page.splitlines() if "| `" in line]
    assert all(len(row) == 3 for row in rows)
    return rows


def test_the_protocol_tells_every_kind_of_finding_and_no_other() -> None:
    told = {row[1].strip("`") for row in rows_of_findings()}
    assert told == {str(kind) for kind in FindingKind}


def test_every_kind_is_one_that_the_code_makes() -> None:
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "attempt.py"]
    assert not [kind for kind in FindingKind if not any(f'"{kind}"' in text for text in sources)]


def test_what_disqualifies_in_the_code_can_disqualify_on_the_page() -> None:
    """Each `Finding(...)` with its kind written out, against the last column of its rows."""
    seen = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"):
                continue
            given = {word.arg: word.value for word in node.keywords}
            kind = given.get("kind")
            if not isinstance(kind, ast.Constant):
                continue
            told = {row[2] for row in rows_of_findings() if row[1] == f"`{kind.value}`"}
            disqualifies = ast.unparse(given.get("disqualifies", ast.Constant(False)))
            if disqualifies == "True":
                assert "yes" in told, kind.value
            elif disqualifies == "False":
                assert "no" in told, kind.value
            else:
                assert told != {"no"}, kind.value
            seen += 1
    assert seen > 15


def test_a_kind_that_nobody_knows_is_made_by_no_code_and_read_from_a_newer_record() -> None:
    made = Finding(kind="loader-variable", what="x")
    assert made.kind is FindingKind.LOADER_VARIABLE
    assert Finding.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(ValueError, match="no kind of finding"):
        Finding(kind="of-tomorrow", what="x")
    read = Finding.model_validate_json('{"kind": "of-tomorrow", "what": "x"}')
    assert read.kind == "of-tomorrow"
    assert '"of-tomorrow"' in read.model_dump_json()


# --- commands ------------------------------------------------------------------------------


def commands(command: click.Command, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of `command` and of everything below it."""
    found = [words]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found += commands(inner, (*words, name))
    return found


@pytest.mark.parametrize("words", commands(group), ids=" ".join)
def test_help_fits_80_columns_and_cuts_nothing_off(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "reb", *words, "--help"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    listed = done.stdout.partition("Commands:")[2]
    assert not [line for line in listed.splitlines() if line.endswith("...")]
    assert not [line for line in done.stdout.splitlines() if len(line) > 80]


def test_every_command_of_the_documents_is_one() -> None:
    known = set(commands(group)) | {("job",)}
    groups = {words[0] for words in known if len(words) == 2}
    for page in PAGES:
        for said in re.findall(
            r"(?:^|[`/ ])reb ([a-z]+)(?: ([a-z]+))?(?= |`|$)", page.read_text(), re.M
        ):
            words = said if said[0] in groups and said[1] else said[:1]
            assert tuple(words) in known, f"{page.name}: reb {' '.join(said)}"


def test_the_page_of_proofs_is_what_the_ledgers_say() -> None:
    script = ROOT / "scripts" / "proofs_page.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False)
    assert done.returncode == 0, "run python scripts/proofs_page.py"


def test_the_page_of_the_papers_release_is_what_its_data_say() -> None:
    script = ROOT / "scripts" / "paper_release_page.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False)
    assert done.returncode == 0, "run python scripts/paper_release_page.py"


def test_the_papers_release_is_told_of_for_every_stage_once() -> None:
    told = tomllib.loads((ROOT / "docs" / "paper-release.toml").read_text())
    stages = [(name, stage) for name, rows in told.items() for stage in rows if stage != "finding"]
    tasks = (PACKAGE / "suites" / "paper44").glob("*/task.toml")
    applicable = {
        (task["name"], stage)
        for task in (tomllib.loads(path.read_text()) for path in tasks)
        for stage in ("cpu", "single_gpu", "multi_gpu")
        if task["applicable"][stage]
    }
    assert len(stages) == 104
    assert set(stages) == applicable
    evidence = [told[name][stage]["evidence"] for name, stage in stages]
    assert not [line for line in evidence if not line.strip() or "\n" in line]
