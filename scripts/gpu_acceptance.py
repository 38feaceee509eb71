"""Shows on a real host that the GPU levels judge as they should: what works, and sabotage.

    python scripts/gpu_acceptance.py run PART… --out DIR
    python scripts/gpu_acceptance.py page DIR > docs/gpu-acceptance.md

Parts: `host` (the preflight), `one` (cases on one GPU), `two` (on two), each of a few minutes
and without a network. The interpreter that runs it must have a torch with CUDA, whose
environment is judged as it is. Each part writes a JSON file; `page` makes one table of them.
Exits with 1 where a case came to something else than it must.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_cases import HEAD, ONE, TWO, Case

from researchenvbench.attempt import Level, LevelResult
from researchenvbench.evidence import OutputEvidence
from researchenvbench.gpu.inventory import GpuInventory, inventory
from researchenvbench.gpu.nvml import nvml
from researchenvbench.run.verification import verify
from researchenvbench.task import FolderSource, Stage, StageName, Task
from researchenvbench.verify import device, preflight
from researchenvbench.verify.probes.device import matrices


@dataclass
class Outcome:
    """What a case came to."""

    case: str
    as_it_must: bool
    verdict: str
    owner: str | None
    reason: str
    must: str
    seconds: float = 0.0
    grades: list[str] = field(default_factory=list)
    seen: list[dict[str, object]] = field(default_factory=list)
    advice: str = ""


def run_case(case: Case, name: StageName, folder: Path) -> Outcome:
    """Judge one program, as a repository with one stage."""
    repo = folder / "repository"
    repo.mkdir(parents=True)
    (repo / "train.py").write_text(HEAD + textwrap.dedent(case.program) + "\n")
    stage = Stage(
        command=case.command,
        time_limit_s=case.limit_s,
        evidence=(OutputEvidence(kind="output", pattern="loss"),),
        parallelism=case.parallelism,
        launcher="python",
    )
    task = Task(
        schema=1,
        name="case",
        domain="tests",
        source=FolderSource(kind="folder", path=str(repo)),
        frameworks=("torch",),
        stages={name: stage},
        folder=repo,
    )
    level = Level.C3 if name is StageName.SINGLE_GPU else Level.C4
    neighbour = Neighbour() if case.neighbour else None
    record = verify(repo, sys.executable, task=task, levels=(level,), out=folder / "out")
    if neighbour:
        neighbour.end()
    return held_against(case, record.results[level])


def held_against(case: Case, result: LevelResult) -> Outcome:
    """The result beside what it must be."""
    use = result.gpu_use
    grades = [result.gpu_grades.get(gpu, "none") for gpu in use.gpus] if use else []
    good = (
        result.verdict == case.verdict
        and (result.owner or None) == (case.owner or None)
        and case.words in result.reason
        and (not case.grades or tuple(grades) == case.grades)
    )
    must = " ".join(
        filter(None, [case.verdict, f"({case.owner})" if case.owner else "", case.words])
    )
    seen = [process.model_dump(mode="json") for process in use.processes] if use else []
    owner = str(result.owner) if result.owner else None
    return Outcome(case.name, good, str(result.verdict), owner, result.reason, must,
                   result.seconds, grades, seen, result.advice)  # fmt: skip


class Neighbour:
    """A program of somebody else's that takes most of a GPU's memory once a stage is on it."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._come)
        self._thread.start()

    def _come(self) -> None:
        first: dict[int, float] = {}
        gpu = inventory().gpus[0].uuid
        with nvml() as driver:
            while not self._ended.wait(0.3):
                now = time.monotonic()
                first = {pid: first.get(pid, now) for pid in driver.processes(gpu)}
                # The preflight's program is gone by then.
                if any(now - since > 4.0 for since in first.values()):
                    break
            else:
                return
        code = (
            "import torch, time\n"
            "free, _ = torch.cuda.mem_get_info(0)\n"
            "much = torch.empty(int(free * 0.9), dtype=torch.uint8, device='cuda:0')\n"
            "time.sleep(300)\n"
        )
        self._program = subprocess.Popen([sys.executable, "-c", code])

    def end(self) -> None:
        """Leave."""
        self._ended.set()
        self._thread.join()
        if self._program:
            self._program.kill()
            self._program.wait()


def recorded() -> list[Outcome]:
    """C2 on answers that no wheel here gives: a real answer, changed where the case differs."""
    card = inventory().gpus[:1]
    seed = "recorded"
    left, right = matrices(seed)
    product = [[sum(a * b for a, b in zip(row, column, strict=True))
                for column in zip(*right, strict=True)] for row in left]  # fmt: skip
    this = {"architecture": card[0].architecture, "product": product, "name": card[0].name}
    good = {"seed": seed, "version": "2", "cuda": "12.4", "devices": [this],
            "architectures": ["sm_80", card[0].architecture]}  # fmt: skip
    cases = [
        ("torch that fits (recorded)", good, ""),
        (
            "torch whose architectures lack the card",
            {**good, "architectures": ["sm_60"]},
            "not for",
        ),
        ("torch without CUDA", {**good, "cuda": None, "devices": []}, "built without CUDA"),
        ("torch for a newer CUDA", {**good, "cuda": "99.0", "devices": []}, "supports CUDA up to"),
    ]
    host = GpuInventory(card, inventory().driver, inventory().cuda)
    outcomes = []
    for name, answer, words in cases:
        read = device._Answer.model_validate(answer)
        said = device._judge(read, seed, host)
        good_one = words in said if words else not said
        verdict = "failed" if said else "passed"
        must = f"failed (agent) {words}" if words else "passed"
        outcomes.append(Outcome(f"C2: {name}", good_one, verdict, None, said, must))
    return outcomes


def stubbed(folder: Path) -> Outcome:
    """C2 of an environment whose torch is an empty package."""
    prefix = folder / "stub"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (site,) = prefix.glob("lib/python*/site-packages")
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text("__version__ = '2.11.0'\n")
    return _c2("C2: a stub called torch", str(prefix / "bin/python"), "failed", folder)


def _c2(name: str, python: str, verdict: str, folder: Path) -> Outcome:
    repo = folder / "empty"
    repo.mkdir(exist_ok=True)
    task = Task(schema=1, name="c2", domain="tests", frameworks=("torch",), stages={},
                source=FolderSource(kind="folder", path=str(repo)), folder=repo)  # fmt: skip
    out = folder / f"out-{verdict}"
    result = verify(repo, python, task=task, levels=(Level.C2,), out=out).results[Level.C2]
    owner = str(result.owner) if result.owner else None
    good = result.verdict == verdict
    return Outcome(name, good, str(result.verdict), owner, result.reason, verdict, result.seconds)


def host_facts() -> dict[str, object]:
    """Hardware and versions, as the page names them."""
    names = ("torch", "triton", "nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-cuda-cupti")
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d"),
        "gpus": [f"{gpu.name} ({gpu.architecture})" for gpu in inventory().gpus],
        "driver": inventory().driver,
        "python": platform.python_version(),
        "versions": versions,
    }


def run_part(part: str, folder: Path) -> list[Outcome]:
    """The cases of a part."""
    if part == "host":
        gpus = inventory().gpus
        host = preflight.look(gpus, {})
        why = host.cause(len(gpus)) or "each GPU computes, each pair copies"
        sees = host.sees_processes and host.sees_busy
        seen = "NVML shows who computes" if sees else "NVML does not show who computes"
        good = not host.cause(len(gpus)) and sees
        copies = [f"{pair}: {way}" for pair, way in host.facts.get("copies", {}).items()]
        reason = "; ".join([why, seen, *copies])
        return [Outcome("the preflight", good, "can" if good else "cannot", None, reason, "can")]
    if part == "one":
        c2 = [_c2("C2: the torch of this host", sys.executable, "passed", folder), stubbed(folder)]
        name, cases = StageName.SINGLE_GPU, ONE
    else:
        c2 = []
        name, cases = StageName.MULTI_GPU, TWO
    if part == "one":
        c2 += recorded()
    outcomes = c2
    for number, case in enumerate(cases):
        outcomes.append(run_case(case, name, folder / str(number)))
        show(outcomes[-1])
    return outcomes


def show(outcome: Outcome) -> None:
    """A line."""
    mark = "  as it must" if outcome.as_it_must else "NOT AS IT MUST"
    grades = f" [{', '.join(outcome.grades)}]" if outcome.grades else ""
    print(f"{mark}  {outcome.case}: {outcome.verdict}{grades} {outcome.reason[:160]}", flush=True)


HEADING = """\
# GPU levels on real hardware

Made by `scripts/gpu_acceptance.py page`; each case is a small program with a verdict that it must
come to. Cases called *recorded* give C2 an answer that no wheel of this host gives.

Not run anywhere yet: CDI devices and MIG slices (their arguments alone are tested), more than two
GPUs, other cards than those named below. A part that is not below was not run either.
"""


def page(folder: Path) -> str:
    """The table of all parts, as a page."""
    lines = [HEADING]
    for file in sorted(folder.glob("*.json")):
        part = json.loads(file.read_text())
        facts = part["host"]
        versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
        where = f"{facts['date']}, {', '.join(facts['gpus'])}, driver {facts['driver']}"
        lines.append(f"## `{part['part']}`\n")
        lines.append(f"{where}, Python {facts['python']}, {versions}.\n")
        lines.append("| case | must be | came to | GPUs | s | as it must |")
        lines.append("| --- | --- | --- | --- | --- | --- |")
        lines += [_row(one) for one in part["outcomes"]]
        lines.append("")
    return "\n".join(lines)


def _row(one: dict[str, Any]) -> str:
    said = one["reason"].replace("|", "\\|").replace("\n", " ")[:200]
    owner = f" ({one['owner']})" if one["owner"] else ""
    came = f"{one['verdict']}{owner}" + (f": {said}" if said else "")
    grades = ", ".join(one["grades"])
    mark = "yes" if one["as_it_must"] else "**NO**"
    return f"| {one['case']} | {one['must']} | {came} | {grades} | {one['seconds']:.0f} | {mark} |"


def main() -> int:
    """Run parts, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_subparsers(dest="what", required=True)
    running = what.add_parser("run")
    running.add_argument("parts", nargs="+", choices=["host", "one", "two"])
    running.add_argument("--out", type=Path, required=True)
    what.add_parser("page").add_argument("folder", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "page":
        print(page(chosen.folder))
        return 0
    good = True
    for part in chosen.parts:
        with tempfile.TemporaryDirectory(prefix="reb-acceptance-") as folder:
            outcomes = run_part(part, Path(folder))
        written = {"part": part, "host": host_facts(), "outcomes": [asdict(o) for o in outcomes]}
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / f"{part}.json").write_text(json.dumps(written, indent=1))
        for outcome in outcomes:
            show(outcome)
        good = good and all(outcome.as_it_must for outcome in outcomes)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
