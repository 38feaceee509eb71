"""Runs in the environment that is built: which import statements work, and how others fail.

First all modules are imported one after the other in one process, since large ones share most
of their time. Those that fail there, or were not reached, then have a process of their own
each, so that one which crashes or hangs costs the others nothing. All happens in a new empty
folder, so that no file of the repository is found by chance. Written for Python 3.6 and
newer. Usage: imports.py QUESTION ANSWER, where QUESTION is a JSON file with `modules` (name:
statements), `workers`, `limit_s`, and `first` (statements to run before; may be empty).
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
with open(sys.argv[1]) as stream:
    asked = json.load(stream)
for statement in asked["first"]:
    exec(statement, {})
for statement in asked["statements"]:
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


def ask(statements, first, limit_s, what):
    """The answers for some statements, and how the process ended if it did not answer all."""
    with tempfile.TemporaryDirectory() as folder:
        question = os.path.join(folder, "question.json")
        with open(question, "w") as stream:
            json.dump({"statements": statements, "first": first}, stream)
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        with tempfile.TemporaryFile() as errors:
            try:
                child = subprocess.run([sys.executable, "-c", CHILD, question], cwd=empty,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=errors, timeout=limit_s)
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
                        "text": how + ": " + tail, "name": what, "where": None})
    return answers


def main(question, answer):
    with open(question, encoding="utf-8") as stream:
        asked = json.load(stream)
    modules, first, limit_s = asked["modules"], asked["first"], asked["limit_s"]
    together = [one for statements in modules.values() for one in statements]
    answers = iter(ask(together, first, limit_s * 2, None))
    said = {name: [next(answers) for _ in statements] for name, statements in modules.items()}
    failed = [name for name, answers in said.items() if not all(one["ok"] for one in answers)]
    if len(modules) > 1:
        with ThreadPoolExecutor(asked["workers"]) as pool:
            jobs = {name: pool.submit(ask, modules[name], first, limit_s, name)
                    for name in failed}
        said.update({name: job.result() for name, job in jobs.items()})
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(said, stream)


main(sys.argv[1], sys.argv[2])
