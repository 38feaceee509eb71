"""Shows on a real host that the GPU levels judge as they should: what works, and sabotage.

    python scripts/gpu_acceptance.py plan
    python scripts/gpu_acceptance.py run PART… --out DIR [--carry DIR] [--limit-s 450]
    python scripts/gpu_acceptance.py keep DIR
    python scripts/gpu_acceptance.py page DIR > docs/gpu-acceptance.md

Parts: `host` (the preflight), `one` (cases on one GPU), `two` (on two), `hang` (launchers whose
programs hang, on what there is), `build` (an extension that nvcc compiles), `suite` (the suite's
tasks with stand-ins). None needs a network; `build` and `suite` need what gpu_wheels.py puts
together. The interpreter that runs it must have a torch with CUDA and pip: its environment is
judged as it is, and `suite` changes it meanwhile.

Each part writes a JSON file after each case, so that what was cut off is gone on with: a case that
came to what it must is not run again. With `--limit-s` none is begun that is not expected to end
in time. `keep` puts what `suite` proved into the suite's ledger, and `page` makes one table of all.
Exits with 1 where a case came to something else than it must, else with 3 where some are left.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpu_suite
from gpu_cases import EXTENSION, HANGS, ONE, TWO
from gpu_run import Outcome, c2, extension, hang, left_out, recorded, run_case, stubbed

from researchenvbench.attempt import Verdict
from researchenvbench.gpu.inventory import inventory
from researchenvbench.proofs import GpuProof, keep_gpu_proofs
from researchenvbench.task import StageName
from researchenvbench.taskfile import load_suite
from researchenvbench.verify import preflight

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = ("host", "one", "two", "hang", "build", "suite")
PROOFS = "gpu-proofs.json"
#: Two GPUs, for the parts that say so.
SEVERAL = 2


@dataclass(frozen=True)
class Work:
    """Something to run, and how long it is expected to take."""

    name: str
    est_s: float
    run: Callable[[Path], list[Outcome]]


@dataclass(frozen=True)
class Chosen:
    """What was asked for."""

    out: Path
    carry: Path
    damages: bool
    tasks: tuple[str, ...]


def works(part: str, chosen: Chosen) -> list[Work]:
    """What a part is made of, in order."""
    if part == "host":
        return [Work("the preflight", 10.0, lambda _: [asked_host()])]
    if part == "one":
        return [
            Work("C2: the torch of this host", 20.0,
                 lambda f: [c2("C2: the torch of this host", sys.executable, f, "passed")]),
            Work("C2: a stub called torch", 5.0, lambda f: [stubbed(f)]),
            Work("C2: recorded", 2.0, lambda _: recorded()),
            *(Work(one.name, one.est_s, lambda f, c=one: [run_case(c, f)]) for one in ONE),
        ]  # fmt: skip
    if part == "two":
        multi = StageName.MULTI_GPU
        return [Work(one.name, one.est_s, lambda f, c=one: [run_case(c, f, multi)]) for one in TWO]
    if part == "hang":
        return [Work(one.name, one.est_s, lambda f, c=one: [hang(c, f)]) for one in HANGS]
    if part == "build":
        source = chosen.carry / "extension"
        return [Work(EXTENSION.name, EXTENSION.est_s, lambda f: extension(source, f))]
    found = gpu_suite.plan(len(inventory().together().gpus))
    return [
        Work(f"{task} {stage}", est_s if chosen.damages else est_s / 2,
             lambda f, t=task, s=stage: [of_suite(t, s, f, chosen)])
        for task, stage, est_s in found if not chosen.tasks or task in chosen.tasks
    ]  # fmt: skip


def asked_host() -> Outcome:
    """The preflight."""
    gpus = inventory().together().gpus
    host = preflight.look(gpus, {})
    why = host.cause(len(gpus)) or "each GPU computes, each pair copies"
    sees = host.sees_processes and host.sees_busy
    seen = "NVML shows who computes" if sees else "NVML does not show who computes"
    good = not host.cause(len(gpus)) and sees
    copies = [f"{pair}: {way}" for pair, way in host.facts.get("copies", {}).items()]
    reason = "; ".join([why, seen, *copies])
    return Outcome("the preflight", good, "can" if good else "cannot", None, reason, "can")


def of_suite(task: str, stage: StageName, folder: Path, chosen: Chosen) -> Outcome:
    """A stage of the suite, whose proof is kept beside the outcomes."""
    name = f"{task} {stage}"
    result, proof, why = gpu_suite.run_task(
        task,
        stage,
        chosen.carry,
        folder,
        chosen.damages,
        lambda text: print(f"    {text}", flush=True),
    )
    if result is None or proof is None:
        return left_out(name, why)
    proofs = load_proofs(chosen.out)
    gpu_suite.keep(proofs, proof)
    texts = {key: one.model_dump(mode="json") for key, one in proofs.items()}
    (chosen.out / PROOFS).write_text(json.dumps(texts, indent=1))
    wrong = [one for one in proof.breakages if not one.as_expected]
    broken = [f"{one.name}: {one.verdict}" for one in proof.breakages]
    reason = "; ".join(
        filter(None, [result.reason, ", ".join(broken), *(one.reason for one in wrong)])
    )
    good = result.verdict is Verdict.PASSED and not wrong
    use = result.gpu_use
    grades = [result.gpu_grades.get(gpu, "none") for gpu in use.gpus] if use else []
    owner = str(result.owner) if result.owner else None
    return Outcome(name, good, str(result.verdict), owner, reason, "passed", result.seconds, grades)


def load_proofs(folder: Path) -> dict[str, GpuProof]:
    """Those that the part `suite` has written, by task and stage."""
    file = folder / PROOFS
    texts = json.loads(file.read_text()) if file.exists() else {}
    return {key: GpuProof.model_validate(one) for key, one in texts.items()}


def host_facts() -> dict[str, object]:
    """Hardware and versions, as the page names them."""
    names = (
        "torch",
        "triton",
        "nvidia-nccl-cu13",
        "nvidia-nccl-cu12",
        "nvidia-cuda-cupti",
        "jax",
        "transformers",
        "numpy",
    )
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


def run_part(part: str, chosen: Chosen, until: float) -> tuple[bool, bool]:
    """(whether all came to what they must, whether all were run), kept after each."""
    file = chosen.out / f"{part}.json"
    before = json.loads(file.read_text())["outcomes"] if file.exists() else []
    done = {one["work"]: [] for one in before}
    for one in before:
        done[one["work"]].append(one)
    kept = {name: some for name, some in done.items() if all(one["as_it_must"] for one in some)}
    left = []
    todo = works(part, chosen)
    if part == "two" and len(inventory().for_stage(SEVERAL)) < SEVERAL:
        print(f"{part}: this host has no two GPUs that can be used together")
        todo = []
    waiting = sum(one.est_s for one in todo if one.name not in kept)
    print(f"{part}: {len(todo)} of which {len(kept)} are done; about {waiting:.0f} s", flush=True)
    for work in todo:
        if work.name in kept:
            continue
        if time.monotonic() + work.est_s > until:
            left.append(work.name)
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="reb-acceptance-") as place:
            outcomes = tried(work, Path(place) / "case")
        for outcome in outcomes:
            show(outcome, time.monotonic() - began)
        done[work.name] = [{**asdict(one), "work": work.name} for one in outcomes]
        every = [one for some in done.values() for one in some]
        written = {"part": part, "host": host_facts(), "outcomes": every}
        file.write_text(json.dumps(written, indent=1))
    for name in left:
        print(f"not begun, there is no time: {name}", flush=True)
    good = all(one["as_it_must"] for some in done.values() for one in some)
    return good, not left


def tried(work: Work, folder: Path) -> list[Outcome]:
    """What it came to, also where this program itself fails: the others are to be run."""
    folder.mkdir(parents=True)
    try:
        return work.run(folder / "own")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is shown
        return [Outcome(work.name, False, "error", None, f"{type(error).__name__}: {error}", "")]


def show(outcome: Outcome, wall_s: float) -> None:
    """A line."""
    mark = "  as it must" if outcome.as_it_must else "NOT AS IT MUST"
    grades = f" [{', '.join(outcome.grades)}]" if outcome.grades else ""
    said = f"{outcome.verdict}{grades} {outcome.reason[:200]}"
    print(f"{mark} {wall_s:5.0f} s  {outcome.case}: {said}", flush=True)


HEADING = """\
# GPU levels on real hardware

Made by `scripts/gpu_acceptance.py page`; each case is a small program with a verdict that it must
come to. Cases called *recorded* give C2 an answer that no wheel of this host gives.

Not run on hardware yet: GPUs in containers (CDI with podman, NVIDIA's runtime with docker) and MIG
slices, which are tested against a driver of our own and the engines' argument lines alone; more
than two GPUs; other cards than those named below. A part that is not below was not run either.
"""


def page(folder: Path) -> str:
    """The table of all parts, as a page."""
    lines = [HEADING]
    for name in PARTS:
        file = folder / f"{name}.json"
        if not file.exists():
            continue
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
    said = one["reason"].replace("|", "\\|").replace("\n", " ")[:300]
    owner = f" ({one['owner']})" if one["owner"] else ""
    came = f"{one['verdict']}{owner}" + (f": {said}" if said else "")
    grades = ", ".join(one["grades"])
    mark = "yes" if one["as_it_must"] else "**NO**"
    return f"| {one['case']} | {one['must']} | {came} | {grades} | {one['seconds']:.0f} | {mark} |"


def main() -> int:
    """Run parts, keep what they proved, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_subparsers(dest="what", required=True)
    running = what.add_parser("run")
    running.add_argument("parts", nargs="+", choices=PARTS)
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--carry", type=Path, default=Path("carry"))
    running.add_argument("--limit-s", type=float, default=450.0)
    running.add_argument("--only", nargs="+", default=[], metavar="TASK", help="of the suite")
    running.add_argument("--no-damages", action="store_true", help="the suite's stages alone")
    what.add_parser("plan")
    what.add_parser("page").add_argument("folder", type=Path)
    what.add_parser("keep").add_argument("folder", type=Path)
    asked = parser.parse_args()
    if asked.what == "page":
        print(page(asked.folder))
        return 0
    if asked.what == "keep":
        proofs = load_proofs(asked.folder)
        keep_gpu_proofs(load_suite(gpu_suite.SUITE).folder, proofs.values())
        print("\n".join(f"{key}: {one.stage.verdict}" for key, one in proofs.items()))
        return 0
    if asked.what == "plan":
        return show_plan()
    began = time.monotonic()
    chosen = Chosen(asked.out, asked.carry.absolute(), not asked.no_damages, tuple(asked.only))
    chosen.out.mkdir(parents=True, exist_ok=True)
    gpu_suite.use_carried(chosen.carry)
    results = [run_part(part, chosen, began + asked.limit_s) for part in asked.parts]
    if not all(good for good, _ in results):
        return 1
    return 0 if all(whole for _, whole in results) else 3


def show_plan() -> int:
    """What each part is made of, and how long it may take; needs no GPU."""
    chosen = Chosen(Path(), Path("carry"), True, ())
    for part in PARTS:
        found = works(part, chosen)
        print(f"{part}: about {sum(one.est_s for one in found):.0f} s")
        for one in found:
            print(f"  {one.est_s:4.0f} s  {one.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
