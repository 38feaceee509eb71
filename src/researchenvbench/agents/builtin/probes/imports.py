"""Runs in the environment that is built: which import statements work, and how others fail.

Each top-level module has a process of its own, so that one which crashes or hangs costs the
others nothing, in a new empty folder, so that no file of the repository is found by chance.
Written for Python 3.6 and newer. Usage: imports.py QUESTION ANSWER, where QUESTION is a JSON
file with `modules` (name: statements), `workers` and `limit_s`.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

CHILD = r"""
import json, os, sys, traceback, warnings
warnings.simplefilter("ignore")
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
for statement in json.loads(sys.argv[1]):
    said = {"statement": statement, "ok": True}
    try:
        exec(statement, {})
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame.filename for frame in frames if not frame.filename.startswith("<")]
        said = {"statement": statement, "ok": False, "kind": type(error).__name__,
                "text": str(error)[:2000], "name": getattr(error, "name", None),
                "where": inside[-1] if inside else None}
    out.write("\n" + json.dumps(said) + "\n"); out.flush()
out.flush(); os._exit(0)
"""


def ask(module, statements, limit_s):
    """The answers for one module's statements, and how its process ended if it did not say."""
    with tempfile.TemporaryDirectory() as folder:
        with tempfile.TemporaryFile() as errors:
            try:
                child = subprocess.run([sys.executable, "-c", CHILD, json.dumps(statements)],
                                       cwd=folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=errors, timeout=limit_s)
                printed, how = child.stdout, "ended with status %s" % child.returncode
            except subprocess.TimeoutExpired as late:
                printed, how = late.stdout or b"", "took longer than %s s" % limit_s
            errors.seek(0)
            tail = errors.read()[-1000:].decode("utf-8", "replace")
    answers = []
    for line in printed.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                answers.append(json.loads(line))
            except ValueError:
                continue
    for statement in statements[len(answers):]:
        answers.append({"statement": statement, "ok": False, "kind": "Crash",
                        "text": how + ": " + tail, "name": module, "where": None})
    return answers


def main(question, answer):
    with open(question, encoding="utf-8") as stream:
        asked = json.load(stream)
    modules = asked["modules"]
    with ThreadPoolExecutor(asked["workers"]) as pool:
        waiting = {name: pool.submit(ask, name, statements, asked["limit_s"])
                   for name, statements in modules.items()}
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump({name: job.result() for name, job in waiting.items()}, stream)


main(sys.argv[1], sys.argv[2])
