"""What is understood of the words in which uv, pip and imports say that they failed.

The texts are what uv 0.13.9, pip 23.2 and CPython 3.11 really printed.
"""

import pytest

from researchenvbench.agents.builtin.failures import cause_of
from researchenvbench.agents.builtin.messages import suggestions

NO_VERSION = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of numpy==1.999 and you require numpy==1.999, we can \
conclude that your requirements are unsatisfiable.
"""
NO_SUCH = """\
error: No solution found when resolving dependencies
  cause: Because nosuchpackagezzzqq was not found in the package registry and you require \
nosuchpackagezzzqq, we can conclude that your requirements are unsatisfiable.
"""
OLD_SETUP = """\
error: Failed to build `gym==0.21.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.get_requires_for_build_wheel` failed

         [stderr]
         error in gym setup command: 'extras_require' must be a dictionary whose values are \
strings or lists of strings containing valid project/version requirement specifiers.
"""
NEEDS_TORCH = """\
error: Failed to build `torch-scatter==2.1.2`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.get_requires_for_build_wheel` failed

         [stderr]
         Traceback (most recent call last):
           File "<string>", line 8, in <module>
         ModuleNotFoundError: No module named 'torch'
"""
NO_CXX = """\
  x Failed to build `compiled @ file:///somewhere/source`
  ├─▶ The build backend returned an error
  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)
      [stderr]
      error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory
"""
NO_INDEX = """\
error: Failed to fetch: https://example.org/simple/torch/
  cause: error sending request for url (https://example.org/simple/torch/)
  cause: client error (Connect)
  cause: dns error
"""
DATE = """\
error: No solution found when resolving dependencies
  cause: Because only typing-extensions<=3.10.0.0 is available and torch>=2.13.0+cpu depends on \
typing-extensions>=4.10.0, we can conclude that torch>=2.13.0+cpu cannot be used.
         And because you require torch==2.13.0, we can conclude that your requirements are \
unsatisfiable.

hint: `typing-extensions` was filtered by `exclude-newer` to only include packages uploaded before \
2021-06-02T00:00:00Z.
"""
GIT = """\
error: Git operation failed
  cause: failed to clone into: /cache/git-v2/db/e73903061316b372
  cause: process didn't exit successfully: `/usr/bin/git fetch --force --update-head-ok \
'https://example.org/foo/bar' '+HEAD:refs/remotes/origin/HEAD'` (exit status: 128)
         fatal: unable to access 'https://example.org/foo/bar/': Could not resolve host: example.org
"""


@pytest.mark.parametrize(
    ("text", "remedy", "name"),
    [
        (NO_VERSION, "drop_bound", "numpy"),
        (NO_SUCH, "leave_out", "nosuchpackagezzzqq"),
        (OLD_SETUP, "old_tools", "gym"),
        (NEEDS_TORCH, "no_isolation", "torch-scatter"),
        (NO_CXX, "no_compiler", "compiled"),
        (NO_INDEX, "unreachable", ""),
        (DATE, "drop_date", ""),
        (GIT, "leave_out_url", "https://example.org/foo/bar"),
        ("ERROR: No matching distribution found for thing==9", "drop_bound", "thing"),
        ("error: Hash mismatch for `six==1.0`", "drop_hashes", ""),
    ],
)
def test_a_resolvers_words_suggest_a_remedy(text, remedy, name):
    first = suggestions(text)[0]
    assert (first.remedy, first.name) == (remedy, name)


def test_a_suggestion_names_the_version_and_what_a_build_missed():
    assert suggestions(OLD_SETUP)[0].version == "0.21.0"
    assert "'extras_require' must be" in suggestions(OLD_SETUP)[0].words
    assert suggestions(NEEDS_TORCH)[0].needs == "torch"


def test_words_that_say_nothing_suggest_nothing():
    assert suggestions("Segmentation fault\n") == []
    assert suggestions("") == []


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("ModuleNotFoundError", "No module named 'a.b'", ("missing", "a.b", "", "")),
        (
            "ImportError",
            "cannot import name 'Monitor' from 'gym.wrappers' (/x/gym/wrappers/__init__.py)",
            ("name_gone", "gym.wrappers", "Monitor", ""),
        ),
        (
            "ImportError",
            (
                "huggingface-hub>=0.34.0,<1.0 is required for a normal functioning of this module, "
                "but found huggingface-hub==2.4.0."
            ),
            ("bound", "", "", "huggingface-hub>=0.34.0,<1.0"),
        ),
        (
            "AttributeError",
            "module 'numpy' has no attribute 'float'.\n`np.float` was deprecated",
            ("bound", "", "", "numpy<1.24"),
        ),
        (
            "AttributeError",
            "module 'pyarrow' has no attribute 'PyExtensionType'",
            ("attribute", "pyarrow", "PyExtensionType", ""),
        ),
        (
            "ImportError",
            "libGL.so.1: cannot open shared object file: No such file or directory",
            ("library", "", "libGL.so.1", ""),
        ),
        ("RuntimeError", "operator torchvision::nms does not exist", ("unknown", "", "", "")),
    ],
)
def test_an_imports_words_have_a_cause(kind, text, expected):
    cause = cause_of({"kind": kind, "text": text, "where": None})
    assert (cause.kind, cause.module, cause.name, cause.requirement) == expected
    assert cause.sentence
