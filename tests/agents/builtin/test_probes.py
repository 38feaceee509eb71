"""The scripts that run in the box, run for real on files made here."""

import base64
import hashlib
import json
import sys
import zipfile

import pytest

from .reading import probe


def imports_of(tmp_path, modules, first=()):
    question = tmp_path / "question.json"
    question.write_text(json.dumps({"modules": modules, "first": list(first), "limit_s": 10}))
    return probe("imports", question)


def test_imports_say_what_works_and_how_the_rest_fails(tmp_path):
    said = imports_of(
        tmp_path,
        {
            "json": ["import json", "from json import loads"],
            "nothing": ["import nothing_of_that_name"],
            "os": ["from os import nothing_of_that_name"],
            "late": ["import decimal"],
        },
    )
    assert [one["ok"] for one in said["json"]] == [True, True]
    assert said["nothing"][0]["kind"] == "ModuleNotFoundError"
    assert "cannot import name" in said["os"][0]["text"]
    assert said["late"][0]["ok"]


def test_a_module_that_ends_its_process_costs_the_others_nothing(tmp_path):
    said = imports_of(
        tmp_path,
        {
            "before": ["import json"],
            "crash": ["import os; os.kill(os.getpid(), 9)"],
            "exit": ["raise SystemExit(3)"],
            "after": ["import decimal"],
        },
    )
    assert said["before"][0]["ok"]
    assert said["crash"][0]["kind"] == "Crash"
    assert "ended with status -9" in said["crash"][0]["text"]
    assert said["exit"][0]["kind"] == "SystemExit"
    assert said["after"][0]["ok"]


def test_what_is_imported_first_prepares_the_others(tmp_path):
    statement = "import os; assert os.environ['PREPARED']"
    assert not imports_of(tmp_path, {"m": [statement]})["m"][0]["ok"]
    first = ["import os; os.environ['PREPARED'] = '1'"]
    assert imports_of(tmp_path, {"m": [statement]}, first)["m"][0]["ok"]


def test_installed_names_distributions_and_their_modules():
    found = probe("installed")
    assert found["pytest"]["modules"] == ["_pytest", "py", "pytest"]
    assert found["packaging"]["version"]


def wheel(folder, name, version, files, requires=()):
    info = f"{name}-{version}.dist-info"
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\n{lines}")
        archive.writestr(f"{info}/RECORD", "old\n")
    return path


def test_names_are_found_in_wheels_without_importing_them(tmp_path):
    for version, text in (("2.0", "def gone(): pass"), ("2.1", "raise RuntimeError"), ("3.0", "")):
        wheel(tmp_path, "some_thing", version, {"thing/__init__.py": text, "thing/inner.py": ""})

    def asked(below, module, name):
        return probe("names_in_wheels", tmp_path, "some-thing", below, module, name)

    assert asked("3.0", "thing", "gone") == {"version": "2.1", "has": False}
    assert asked("2.1", "thing", "gone") == {"version": "2.0", "has": True}
    assert asked("3.0", "thing", "inner")["has"]
    assert asked("3.0", "thing.inner", "")["has"]
    assert asked("2.0", "thing", "gone") == {"version": None, "has": False}


def test_requirements_in_old_wheels_are_made_legal(tmp_path):
    pytest.importorskip("pip")
    path = wheel(
        tmp_path,
        "old",
        "1.0",
        {"old.py": ""},
        [
            "numpy (>=1.18.0)",
            "opencv-python (>=3.) ; extra == 'atari'",
            "six (>=1.*)",
            "odd (>=2004d)",
        ],
    )
    said = probe("mend_wheels", tmp_path, python=sys.executable)
    assert [line.partition(": ")[2] for line in said] == [
        "opencv-python (>=3.) ; extra == 'atari' -> opencv-python (>=3) ; extra == 'atari'",
        "six (>=1.*) -> six (>=1)",
        "odd (>=2004d) -> odd",
    ]
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read("old-1.0.dist-info/METADATA")
        record = archive.read("old-1.0.dist-info/RECORD").decode()
    assert b"numpy (>=1.18.0)" in metadata
    digest = base64.urlsafe_b64encode(hashlib.sha256(metadata).digest()).rstrip(b"=").decode()
    assert f"old-1.0.dist-info/METADATA,sha256={digest},{len(metadata)}" in record
