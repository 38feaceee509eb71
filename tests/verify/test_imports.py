"""What the code imports, what of it is optional, and what is the repository's own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from researchenvbench.errors import SourceError
from researchenvbench.verify import outline as outlines
from researchenvbench.verify.imports import (
    collect,
    import_closure,
    is_python,
    read_folder,
    stdlib_names,
)
from researchenvbench.verify.objects import linked_modules, read_commit
from researchenvbench.verify.statements import Statement, parse, syntax
from researchenvbench.verify.tree import Tree

REPOSITORIES = Path(__file__).parents[1] / "repositories"
DATA = Path(__file__).parents[1] / "data"
EVERY_KIND = REPOSITORIES / "imports_of_every_kind"


def files_of(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def imports():
    return collect(read_folder(EVERY_KIND, files_of(EVERY_KIND)))


def outline(content):
    return outlines.outline(content, syntax(content))


def imported(code, **expected):
    found = {s.module: s.optional for s in parse(code.encode()) if not s.level}
    assert found == expected


def test_the_papers_total_counts_standard_and_own_names_and_no_marked_file(imports):
    assert "after_byte_order_mark" in imports.modules
    counted = sorted(set(imports.modules) - {"after_byte_order_mark", "in_latin_1"})
    assert {"os", "kit", "helper"} <= set(counted)
    assert imports.total_paper == len(counted) == 24


def test_required_and_optional_are_told_apart(imports):
    optional = {name for name, module in imports.modules.items() if not module.required}
    assert optional == {
        "tried",
        "fallback",
        "tried_in_a_tuple",
        "tried_bare",
        "suppressed",
        "only_typed",
        "on_windows",
        "on_posix",
    }


def test_one_required_import_makes_a_module_required_but_not_in_every_file(imports):
    assert imports.modules["torch"].required
    assert imports.required_in("kit/__init__.py", "torch")
    assert not imports.required_in("kit/both_ways.py", "torch")


def test_full_names_and_files_are_kept(imports):
    torch = imports.modules["torch"]
    assert torch.dotted == ("torch", "torch.nn.functional", "torch.utils.data")
    assert torch.files == ("kit/__init__.py", "kit/both_ways.py")


def test_files_that_do_not_parse_are_named_with_the_reason(imports):
    assert {bad.file for bad in imports.unparsable} == {
        "scripts/null.py",
        "scripts/two.py",
        "scripts/undeclared_latin.py",
    }
    assert all(bad.error for bad in imports.unparsable)


def test_a_declared_encoding_is_decoded(imports):
    assert imports.modules["in_latin_1"].files == ("scripts/latin.py",)


def test_relative_imports_never_count():
    assert collect([("a.py", b"from . import x\nfrom .y import z\n")]).total_paper == 0


@pytest.mark.parametrize(
    "path",
    [".venv/a.py", "x/build/a.py", "dist/a.py", "node_modules/p/a.py", ".tox/a.py", "a.pyi", "a"],
)
def test_excluded_folders_and_other_files_are_not_read(path):
    assert not is_python(path)
    assert collect([(path, b"import x")]).total_paper == 0


def test_a_file_that_is_called_like_an_excluded_folder_is_read():
    assert is_python("tools/build.py")


def test_type_checking_inverted_and_combined():
    imported(
        "if not TYPE_CHECKING:\n import a\nelse:\n import b\n"
        "if typing.TYPE_CHECKING and x:\n import c\nif x or TYPE_CHECKING:\n import d\n",
        a=False,
        b=True,
        c=True,
        d=False,
    )


def test_a_condition_on_the_version_makes_both_sides_optional():
    imported(
        "if sys.version_info >= (3, 11):\n import tomllib\nelse:\n import tomli\n",
        tomllib=True,
        tomli=True,
    )


def test_nested_deeper_than_python_recurses():
    deep = "if a:\n import one\n" + "elif a:\n import two\n" * 3000
    assert isinstance(parse(deep.encode()), (tuple, str))
    assert outline(deep.encode())


def test_the_once_standard_library_counts_for_old_interpreters_only():
    assert "imp" in stdlib_names(None)
    assert "imp" not in stdlib_names(["os"])
    assert "__main__" in stdlib_names(["os"])


# --- reading files ---------------------------------------------------------------------


def test_a_commit_is_read_from_gits_objects(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        ).stdout.decode()

    git("init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "naïve name.py").write_bytes(b"import a\n")
    (tmp_path / "empty.py").write_bytes(b"")
    (tmp_path / "link.py").symlink_to("sub")
    (tmp_path / "note.txt").write_text("x")
    git("add", "-A")
    git("commit", "-qm", "all")
    commit = git("rev-parse", "HEAD").strip()
    (tmp_path / "empty.py").write_bytes(b"import later")
    found = read_commit(tmp_path / ".git", commit)
    assert sorted(found.python) == [("empty.py", b""), ("sub/naïve name.py", b"import a\n")]
    assert found.links == {"link.py": "sub"}
    assert set(found.paths) == {"empty.py", "link.py", "note.txt", "sub/naïve name.py"}
    with pytest.raises(SourceError, match="ls-tree"):
        read_commit(tmp_path / ".git", "0" * 40)
    blob = git("rev-parse", "HEAD:sub/naïve name.py").strip()
    (tmp_path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(SourceError, match=f"naïve name.py: git lacks the object {blob}"):
        read_commit(tmp_path / ".git", commit)


def test_links_of_a_commit_are_those_of_its_checkout(repository):
    folder = repository.folder
    repository.write({"pack/a.py": "", "pack/sub/b.py": "", "one.py": "", "far/keep": ""})
    for link, target in {
        "alias": "pack",
        "far/back": "../pack/sub",
        "two.py": "one.py",
        "out": "../elsewhere",
        "root": "/etc",
        "itself": ".",
    }.items():
        (folder / link).symlink_to(target)
    commit = repository.commit()
    found = linked_modules(read_commit(folder / ".git", commit))
    assert found == {
        "alias/a.py": "pack/a.py",
        "alias/sub/b.py": "pack/sub/b.py",
        "far/back/b.py": "pack/sub/b.py",
        "two.py": "one.py",
    }
    tracked = repository("ls-files").splitlines()
    assert found == outlines.linked_modules(folder, tracked)


def test_links_are_not_followed_and_a_pipe_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"import secret")
    (tmp_path / "link.py").symlink_to("secret")
    assert list(read_folder(tmp_path, ["link.py"])) == []
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(SourceError, match=r"pipe\.py is no regular file"):
        list(read_folder(tmp_path, ["pipe.py"]))
    with pytest.raises(SourceError, match=r"gone\.py cannot be read"):
        list(read_folder(tmp_path, ["gone.py"]))


# --- the repository's own modules ------------------------------------------------------


def own(files, file, module, *names):
    return Tree(files).is_first_party(file, Statement(module, names, 0, False, 1))


def test_a_name_is_own_where_it_lies_beside_above_or_in_src():
    files = ["a/b/run.py", "a/b/near.py", "a/pack/__init__.py", "root.py", "src/main/__init__.py"]
    for name in ("near", "pack", "root", "main"):
        assert own(files, "a/b/run.py", name)
    assert not own(files, "root.py", "near")
    assert not own(files, "a/b/run.py", "numpy")


def test_a_compiled_or_generated_submodule_belongs_to_its_package():
    files = ["pack/__init__.py", "pack/fast.cpython-311-x86_64-linux-gnu.so", "quick.pyx"]
    assert own(files, "run.py", "pack._version")
    assert own(files, "run.py", "quick")
    assert own(["fast.cpython-311-x86_64-linux-gnu.so"], "run.py", "fast")


def test_a_folder_without_init_is_own_only_for_what_lies_in_it():
    files = ["train.py", "datasets/prepare.py"]
    assert not own(files, "train.py", "datasets")
    assert not own(files, "train.py", "datasets", "load_dataset")
    assert own(files, "train.py", "datasets", "prepare")
    assert own(files, "train.py", "datasets.prepare")


def test_within_a_package_the_whole_name_has_to_be_found():
    files = ["pack/__init__.py", "pack/run.py", "pack/openai/__init__.py", "pack/utils.py"]
    assert own(files, "pack/run.py", "utils", "helper")
    assert own(files, "pack/run.py", "pack.generated")
    assert not own(files, "pack/run.py", "openai.types")


def test_a_file_is_not_the_module_that_it_imports_by_its_own_name():
    assert not own(["tools/tracker.py"], "tools/tracker.py", "tracker")
    assert own(["pack/__init__.py"], "pack/__init__.py", "pack.sub")


# --- from entry points -----------------------------------------------------------------


def test_the_closure_follows_absolute_and_relative_imports_and_packages():
    closure = import_closure(EVERY_KIND, ["scripts/run.py"])
    assert closure == {
        "scripts/run.py",
        "scripts/helper.py",
        "kit/__init__.py",
        "kit/inner/__init__.py",
        "kit/inner/deep.py",
    }


def test_the_closure_starts_from_modules_and_from_code_that_comes_from_elsewhere():
    root = REPOSITORIES / "src_layout"
    package = {"src/layered/__init__.py", "src/layered/core.py"}
    assert import_closure(root, [], entry_modules=["layered.core"]) >= {"src/layered/core.py"}
    assert import_closure(root, [], code=[b"import layered"]) == package
    assert import_closure(root, ["absent.py"]) == set()


# --- what the checker is given ---------------------------------------------------------


def test_an_outline_keeps_imports_with_their_conditions_and_nothing_else():
    code = '''"""Doc."""
# pyright: reportMissingImports=false
import a  # type: ignore
X = heavy(1)
def f(x: int = 3) -> str:
    if sys.platform == "win32":
        return 1
    import b
    print(x)
def dropped(): ...
async def g():
    async with x:
        from c import d
try:
    y()
except ImportError:
    raise
sys.exit(3)
import e
'''
    assert outline(code.encode()).decode() == (
        "import a\n\ndef f():\n    if sys.platform == 'win32':\n        return\n    import b\n\n"
        "def g():\n    with _:\n        from c import d\n"
        "try:\n    pass\nexcept _:\n    raise\nsys.exit()\nimport e\n"
    )


def test_an_outline_imports_what_the_file_imports(imports):
    for file, statements in imports.files.items():
        small = parse(outline((EVERY_KIND / file).read_bytes()))
        assert not isinstance(small, str)
        assert {(s.module, s.names, s.level) for s in small} == {
            (s.module, s.names, s.level) for s in statements
        }


def test_a_file_that_does_not_parse_is_given_whole_but_for_the_checkers_comments():
    assert outline(b"print 1 # pyright: basic\n") == b"print 1 # pyright  basic\n"


# --- the paper's numbers ---------------------------------------------------------------


def test_the_papers_totals_are_at_hand():
    data = json.loads((DATA / "c0_totals.json").read_text())
    assert "2603.06739" in data["source"]
    assert len(data["repositories"]) == 22
    assert all(entry["total"] > 0 for entry in data["repositories"].values())
