"""What a tool's template leaves open in a file is values, and for whom it finds modules is read."""

from __future__ import annotations

import pytest

from researchenvbench.verify.integrity.templates import Tracked, digest_of, misled

VALUES = """\
import sys

MAPPING: dict[str, str] = {'mine': '/repo/src/mine'}
NAMESPACES: dict[str, list[str]] = {}
PATH_PLACEHOLDER = '__editable__.mine-1.0.finder' + ".__path_hook__"


def install():
    sys.meta_path.append(MAPPING)
"""
CALL = """\
def install(*given):
    pass


install({'mine': '/repo/src/mine/__init__.py'}, {}, None, [], "")
"""
REDIRECTIONS = """\
from editables.redirector import RedirectingFinder as F
F.install()
F.map_module('mine', '/repo/src/mine/__init__.py')
"""
INIT = """\
class MesonpyMetaFinder:
    pass


def init():
    finder = MesonpyMetaFinder(
        'mine',
        {'mine'},
        '/repo/build/cp311',
        ['/usr/bin/ninja'],
        False,
    )
    sys.meta_path.insert(0, finder)
    sys.path_hooks.insert(0, finder._path_hook)
"""
TEXTS = {"values": VALUES, "call": CALL, "redirections": REDIRECTIONS}
TRACKED = Tracked("/repo", frozenset({"src/mine/__init__.py", "src/mine/fit.py", "train.py"}))


@pytest.mark.parametrize("form", TEXTS)
def test_other_values_give_the_same_digest(form: str) -> None:
    other = TEXTS[form].replace("mine", "other").replace("/repo", "/elsewhere")
    assert digest_of(TEXTS[form], form) == digest_of(other, form) != ""


@pytest.mark.parametrize(
    ("form", "old", "new"),
    [
        ("values", "/src/mine'}", "/src/mine'}; import evil; _ = {}"),
        ("values", "NAMESPACES: dict[str, list[str]] = {}", "NAMESPACES = dict()"),
        ("values", "NAMESPACES:", "import evil; NAMESPACES:"),
        ("values", "import sys\n", "import sys\nMAPPING = {}\n"),
        ("values", "/src/mine'}\n", "/src/mine'}\\\n; import evil\n"),
        ("values", "import sys\n", "import sys\f\n"),
        ("call", "install({", "import evil; install({"),
        ("call", '[], "")\n', '[], "")\nimport evil\n'),
        ("call", '[], "")', '[], "");import evil'),
        ("call", "install({'mine': '/repo/src/mine/__init__.py'}, {}, None, [], \"\")", "import e"),
        ("call", "None", "__import__('evil')"),
        ("call", "None", "evil()"),
        ("call", "None", "evil"),
        ("call", "install({'mine'", "if True: install({'mine'"),
        ("redirections", "F.map_module('mine'", "F.map_module('mine'.evil()"),
        ("redirections", "__init__.py')", "__init__.py'); import evil"),
        ("redirections", "'mine'", "'\ufb01nd'"),
    ],
)
def test_code_among_the_values_is_another_file(form: str, old: str, new: str) -> None:
    text = TEXTS[form]
    assert text.count(old) >= 1
    assert digest_of(text.replace(old, new, 1), form) != digest_of(text, form)


@pytest.mark.parametrize("form", TEXTS)
def test_a_finder_for_the_tracked_modules_is_honest(form: str) -> None:
    assert misled(TEXTS[form], form, TRACKED) == ""
    assert misled(TEXTS[form].replace("mine", "other"), form, TRACKED) == ""  # a library's


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("name", ["argparse", "sitecustomize", "torch.nn", "_distutils_hack"])
def test_no_finder_may_be_for_what_is_not_its_own(form: str, name: str) -> None:
    assert misled(TEXTS[form].replace("'mine'", f"'{name}'", 1), form, TRACKED) in (
        {name, ""} if form == "redirections" and "." in name else {name}
    )


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("place", ["/box/other", "/repo/build/lib", "/repository/src"])
def test_a_tracked_module_is_found_where_it_is_tracked(form: str, place: str) -> None:
    assert misled(TEXTS[form].replace("/repo/src", place), form, TRACKED) == "mine"


def test_a_function_that_only_installs_is_a_call() -> None:
    other = INIT.replace("mine", "other").replace("/repo", "/elsewhere").replace("False", "True")
    assert digest_of(INIT, "call") == digest_of(other, "call") != ""
    assert misled(INIT, "call", TRACKED) == ""
    assert misled(INIT.replace("{'mine'}", "{'mine', 'json'}"), "call", TRACKED) == "json"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("finder._path_hook", "evil"),
        ("    sys.path_hooks", "    import evil; sys.path_hooks"),
        ("init()", "init(x=evil())"),
        ("init()", "init() -> evil()"),
        ("def init", "@evil\ndef init"),
        ("False", "evil()"),
        ("finder = Mes", "import evil; finder = Mes"),
        ("finder = MesonpyMetaFinder", "finder = evil"),
        ("._path_hook)\n", "._path_hook)\nimport evil\n"),
    ],
)
def test_a_function_that_does_more_is_another_file(old: str, new: str) -> None:
    assert INIT.count(old) >= 1
    assert digest_of(INIT.replace(old, new, 1), "call") != digest_of(INIT, "call")
