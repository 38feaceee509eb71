"""Causes are found in logs that people really had, and the host is not blamed for an agent's work.

`data/failure_logs.json` holds excerpts of logs from public issue threads, each with its
address, the rule that must know it, and logs that look like it and have another cause.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from researchenvbench.attempt import Owner
from researchenvbench.diagnose import TAIL_BYTES, diagnose, diagnose_log, last_lines, tail

LOGS = json.loads((Path(__file__).parents[1] / "data" / "failure_logs.json").read_text())
NEAR_MISSES = [(log["name"], miss) for log in LOGS for miss in log["near_misses"]]
#: Near misses whose cause is the host's after all: a library of the system is missing.
OF_THE_HOST = {"libstdcxx-missing"}


@pytest.mark.parametrize("log", LOGS, ids=[log["name"] for log in LOGS])
def test_a_log_that_a_rule_knows(log: dict[str, Any]) -> None:
    diagnosis = diagnose(log["log"])
    assert diagnosis is not None
    assert (diagnosis.rule, diagnosis.owner) == (log["rule"], Owner(log["owner"]))
    assert "{" not in diagnosis.cause + diagnosis.advice


@pytest.mark.parametrize(
    ("name", "miss"), NEAR_MISSES, ids=[f"{name}-{miss['name']}" for name, miss in NEAR_MISSES]
)
def test_a_near_miss_does_not_go_to_the_host(name: str, miss: dict[str, str]) -> None:
    diagnosis = diagnose(miss["log"])
    if "rule" in miss:
        assert diagnosis is not None
        assert diagnosis.rule == miss["rule"]
    if diagnosis is not None and miss["name"] not in OF_THE_HOST:
        assert diagnosis.owner is Owner.AGENT


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "rule", "cause"),
    [
        ("import not_there", "missing-module", "the module not_there is not installed"),
        ("import json.not_there", "missing-module", "the module json.not_there is not installed"),
        ("from json import nothing", "import-name", "json offers no nothing: "),
        ("import json; json.nothing", "module-attribute", "the module json has no nothing: "),
        (
            "import ctypes; ctypes.CDLL('libnothing.so.1')",
            "missing-shared-object",
            "libnothing.so.1 cannot be loaded",
        ),
        ("raise ValueError('a: b')", "python-error", "ValueError: a: b"),
        ("raise KeyError", "python-error", "KeyError: "),
        ("import subprocess; subprocess.run(['sox'])", "missing-program", "sox is not installed"),
        ("import os; raise OSError(28, os.strerror(28))", "disk-full", "the disk is full"),
    ],
)
def test_what_this_python_says(code: str, rule: str, cause: str) -> None:
    diagnosis = diagnose(run_python(code))
    assert diagnosis is not None
    assert diagnosis.rule == rule
    assert cause in diagnosis.cause


def test_a_system_library_names_its_package() -> None:
    text = "ImportError: libsndfile.so.1: cannot open shared object file: No such file"
    diagnosis = diagnose(text)
    assert diagnosis is not None
    assert (diagnosis.owner, diagnosis.system_packages) == (Owner.HOST, ("libsndfile1",))
    assert diagnosis.advice == "apt-get install libsndfile1"


def test_the_last_words_win() -> None:
    warned = run_python("import not_there")
    assert getattr(diagnose(warned + run_python("raise ValueError('x')")), "rule", "") == (
        "python-error"
    )
    library = "libGL.so.1: cannot open shared object file\n"
    later = diagnose(library + "ModuleNotFoundError: No module named 'x'")
    assert later is not None
    assert later.owner is Owner.AGENT


def test_a_library_that_was_warned_of_is_no_cause() -> None:
    said = "Failed to load image Python extension: libGL.so.1: cannot open shared object file"
    for warning in (f"io/image.py:13: UserWarning: {said}", f"[WARNING] {said}"):
        assert diagnose(f"{warning}\nstopped\n") is None
    assert diagnose(f"ImportError: {said}\n") is not None


def test_a_wrapper_gives_way_to_the_cause_that_it_names() -> None:
    wrapped = """
try:
    import not_there
except ImportError as error:
    raise RuntimeError("could not load the model") from error
"""
    diagnosis = diagnose(run_python(wrapped))
    assert diagnosis is not None
    assert diagnosis.cause == "the module not_there is not installed"
    handled = wrapped.replace(" from error", "")
    diagnosis = diagnose(run_python(handled))
    assert diagnosis is not None
    assert diagnosis.cause == "RuntimeError: could not load the model"
    earlier = diagnose(run_python(wrapped) + run_python("raise ValueError('x')"))
    assert earlier is not None
    assert earlier.cause == "ValueError: x"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "all good\nloss 0.1\n", "Error", "x" * 100_000, "\0\x1b[31m"]
)
def test_what_no_rule_knows(text: str) -> None:
    assert diagnose(text) is None


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"ValueError: early\n" + b"x" * TAIL_BYTES)
    assert diagnose_log(log) is None
    log.write_bytes(b"\xff\xfe" * TAIL_BYTES + b"\nValueError: late\r\n\r\n")
    found = diagnose_log(log)
    assert found is not None
    assert found.cause == "ValueError: late"
    assert diagnose_log(tmp_path / "absent") is None
    assert tail(tmp_path / "absent") == ""


def test_progress_bars_are_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("10 %\r50 %\r100 %\nlast\n\n")
    assert last_lines(tmp_path / "log", 2) == "100 % / last"


def test_every_rule_fills_in_what_its_pattern_finds() -> None:
    import tomllib

    text = files("researchenvbench.diagnose").joinpath("rules.toml").read_text()
    rules = tomllib.loads(text)["rules"]
    assert len({rule["name"] for rule in rules}) == len(rules)
    for rule in rules:
        groups = set(re.compile(rule["pattern"]).groupindex)
        used = set(re.findall(r"\{(\w+)\}", rule["cause"] + rule.get("advice", "")))
        assert used <= groups | ({"package"} if "table" in rule else set()), rule["name"]
        assert ("key" in groups) is ("table" in rule), rule["name"]
        assert Owner(rule["owner"])
