"""Runs in the environment that is built: which import statements work, and how others fail.

Modules are imported one after the other in one process, since large ones share most of their
time. At the first that fails the process ends, since half-imported modules would mislead what
follows: the failed module is asked again alone, and the rest in a new process. So one which
crashes or hangs costs the others nothing. All happens in a new empty folder, so that no file
of the repository is found by chance. Written for Python 3.7 and newer. Usage: imports.py
QUESTION ANSWER, where QUESTION is a JSON file with `modules` (name: statements), `limit_s`,
and `first` (statements to run before; may be empty).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = r"""
import json, os, sys, traceback, warnings
warnings.simplefilter("ignore")
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
with open(sys.argv[1]) as stream:
    asked = json.load(stream)
for statement in asked["first"]:
    exec(statement, {})
for module, statements in asked["modules"]:
    answers = []
    for statement in statements:
        said = {"statement": statement, "ok": True}
        try:
            exec(statement, {})
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            inside = [frame.filename for frame in frames if not frame.filename.startswith("<")]
            said = {"statement": statement, "ok": False, "kind": type(error).__name__,
                    "text": str(error)[:2000], "where": inside[-1] if inside else None}
        answers.append(said)
    out.write("\n" + json.dumps([module, answers]) + "\n"); out.flush()
    if not all(said["ok"] for said in answers):
        break
out.flush(); os._exit(0)
"""


def ask(
    modules: list[tuple[str, list[str]]], first: list[str], limit_s: float
) -> dict[str, list[dict[str, object]]]:
    """The answers of one process, up to the first module that fails or is not answered."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        question = Path(folder) / "question.json"
        question.write_text(json.dumps({"modules": modules, "first": first}), encoding="utf-8")
        empty = Path(folder) / "empty"
        empty.mkdir()
        try:
            child = subprocess.run(
                [sys.executable, "-c", CHILD, str(question)],
                cwd=str(empty),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=limit_s,
                check=False,
            )
            printed, how = child.stdout, f"ended with status {child.returncode}"
        except subprocess.TimeoutExpired as late:
            printed, how = late.stdout or b"", f"took longer than {limit_s:.0f} s"
        errors.seek(0)
        tail = errors.read()[-1000:].decode("utf-8", "replace")
    said: dict[str, list[dict[str, object]]] = {}
    for line in printed.decode("utf-8", "replace").splitlines():
        if line.startswith("["):
            try:
                module, answers = json.loads(line)
            except ValueError:
                continue
            said[module] = answers
    for module, statements in modules:
        if module not in said and all(one["ok"] for known in said.values() for one in known):
            crash = {"statement": statements[0], "ok": False, "kind": "Crash"}
            said[module] = [{**crash, "text": f"{how}: {tail}", "where": None}]
    return said


def main(question: str, answer: str) -> None:
    """Answer for all modules that are asked about."""
    asked = json.loads(Path(question).read_text(encoding="utf-8"))
    first, limit_s = asked["first"], float(asked["limit_s"])
    waiting = list(asked["modules"].items())
    said: dict[str, list[dict[str, object]]] = {}
    while waiting:
        found = ask(waiting, first, limit_s * (2 if len(waiting) > 1 else 1))
        alone = waiting[0][0]
        for module, statements in waiting:
            if module in found and module != alone and not all(one["ok"] for one in found[module]):
                found[module] = ask([(module, statements)], first, limit_s)[module]
        said.update(found)
        waiting = [one for one in waiting if one[0] not in found]
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


main(sys.argv[1], sys.argv[2])
