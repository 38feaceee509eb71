"""Puts together what the part `suite` of gpu_acceptance.py needs on a host without a network.

    python scripts/gpu_wheels.py DIR [--only TASK…] [--from CLONES]

Wheels for CPython 3.12 on Linux, x86-64, that such a host lacks: of each task and of reb itself,
in `DIR/wheels`, where `tasks.json` says whose each is; the sources of the tasks in `DIR/mirrors`,
their stand-ins in `DIR/cache`, and the source of an extension in `DIR/extension`. Prints what
each weighs; exits with 1 where something could not be had, or the wheels weigh more than 60 MB.

A host is taken to have torch, torchvision, transformers and what else KNOWN names; the pins are
of the newest releases that its versions took on 2026-12-01.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

LIMIT_BYTES = 60_000_000
PLATFORM = ("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64",
            "--platform", "manylinux_2_17_x86_64", "--python-version", "3.12")  # fmt: skip
#: What the tasks need beside the packages of such a host, by task.
_IMAGES = ("albucore==0.0.24", "albumentations==2.0.8", "simsimd==6.5.16", "stringzilla==5.3.2")
_DATASETS = ("dill==0.3.8", "multiprocess==0.70.16")
_CONFIGURATION = ("antlr4-python3-runtime==4.9.3", "omegaconf==2.3.1")
#: In this order they are run: those that need little, and show most, come first.
TASKS: dict[str, tuple[str, ...]] = {
    "feifeibear__long-context-attention": (),
    "meta-pytorch__torchft": (
        "torchft-nightly==2025.12.27", "torchdata==0.11.0", "googleapis-common-protos==1.76.0",
        "opentelemetry-api==1.45.2", "opentelemetry-exporter-http-transport==0.66b2",
        "opentelemetry-exporter-otlp-common==0.66b2",
        "opentelemetry-exporter-otlp-proto-common==1.45.2",
        "opentelemetry-exporter-otlp-proto-http==1.45.2", "opentelemetry-proto==1.45.2",
        "opentelemetry-sdk==1.45.2", "opentelemetry-semantic-conventions==0.66b2",
    ),
    "lightly-ai__lightly-train": (
        *_IMAGES, *_CONFIGURATION, "eval-type-backport==0.4.0", "hydra-core==1.3.8",
        "lightly==1.6.0",
    ),
    "NVIDIA__kvpress": (
        "transformers==4.57.6", "tokenizers==0.22.2", "huggingface-hub==0.36.2",
        "datasets==2.21.0", "fsspec==2024.6.1", *_DATASETS, "cachetools==5.5.2", "fire==0.6.0",
        "termcolor==3.3.0", "nltk==3.10.4", "defusedxml==0.7.1", "rouge==1.0.1",
        "bert-score==0.3.13", "hatchling==1.27.0", "trove-classifiers==2025.9.11.17",
    ),
    "KRLabsOrg__LettuceDetect": (
        "openai==3.57.0", "rag-fact-checker==0.1.5", "httpx2==2.16.2", "httpcore2==2.16.2",
        "jiter==0.19.0", "truststore==0.10.5", "sniffio==1.3.1", "easydict==1.13",
        "python-dotenv==1.0.1",
    ),
    "alephpi__Texo": (
        *_IMAGES, *_CONFIGURATION, *_DATASETS, "hydra-core==1.3.8",
        "transformers==4.40.0", "tokenizers==0.19.1", "huggingface-hub==0.36.2",
        "datasets==4.0.0", "fsspec==2025.3.0", "evaluate==0.4.6", "rapidfuzz==3.14.6",
        "ftfy==6.3.1", "wcwidth==0.9.4", "torchinfo==1.8.0", "hatchling==1.27.0",
        "trove-classifiers==2025.9.11.17",
    ),
}  # fmt: skip
#: What reb itself needs to judge, beside such a host's packages; tasks find it there too.
REB = (
    "annotated-types==0.8.0", "pydantic==2.14.4", "pydantic-core==2.50.5",
    "typing-inspection==0.4.5",
)  # fmt: skip
#: There are no wheels of these; they are pure Python, and their wheels are made here.
FROM_SOURCE = ("antlr4-python3-runtime", "fire", "rouge")
#: A small extension with CUDA code, whose source distribution the starter suite pins.
EXTENSION = ("starter", "torchsort")
#: Of the cache of stand-ins, what only their recipes were run with.
PRUNED = ("uv", "staging", "logs")
KNOWN = (
    "torch 2.11 for CUDA 13, torchvision, transformers 5, accelerate, tensorboard, "
    "pytorch-lightning, lightning, einops, scikit-learn, pandas, pyarrow, opencv, sentencepiece"
)


def pip(*arguments: str | Path) -> bool:
    """Whether pip did it."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(argv, check=False).returncode == 0


def fetch(pins: tuple[str, ...], into: Path) -> list[Path]:
    """The wheels of pins, had before or now; fewer where one could not be had."""
    wheels = []
    for pin in pins:
        name, _, version = pin.partition("==")
        stem = f"{name.replace('-', '_')}-{version}-".lower()
        for again in (False, True):
            if found := [one for one in into.glob("*.whl") if one.name.lower().startswith(stem)]:
                wheels.append(found[0])
                break
            if again:
                print(f"NOT HAD: {pin}")
            elif name in FROM_SOURCE:
                pip("wheel", "--quiet", "--no-deps", "--wheel-dir", into, pin)
            else:
                pip("download", "--quiet", "--no-deps", "--only-binary", ":all:", *PLATFORM,
                    "--dest", into, pin)  # fmt: skip
    return wheels


def weight(folder: Path) -> int:
    """Bytes of the files below a folder, each once."""
    files = {one.stat().st_ino: one.stat().st_size for one in folder.rglob("*") if one.is_file()}
    return sum(files.values())


def reb(*arguments: str | Path, **variables: str) -> bool:
    """Whether a command of reb did it."""
    argv = [sys.executable, "-m", "researchenvbench", *arguments]
    return subprocess.run(argv, check=False, env={**os.environ, **variables}).returncode == 0


def main() -> int:
    """Everything, and what it weighs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--from", dest="place", help="a folder of clones to look for commits in")
    parser.add_argument("--wheels-only", action="store_true", help="no sources, no stand-ins")
    chosen = parser.parse_args()
    folder = chosen.folder.absolute()
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    listed: dict[str, list[str]] = {}
    good = True
    for name, pins in {"reb": REB, **{name: TASKS[name] for name in chosen.only}}.items():
        found = fetch(pins, wheels)
        good = good and len(found) == len(pins)
        listed[name] = sorted(one.name for one in found)
        size = sum(one.stat().st_size for one in found)
        print(f"{size / 1e6:6.1f} MB  {len(found):3} wheels  {name}")
    (wheels / "tasks.json").write_text(json.dumps(listed, indent=1))
    for one in wheels.glob("*.whl"):
        if not any(one.name in names for names in listed.values()):
            one.unlink()  # of tasks that were not asked for
    total = weight(wheels)
    print(f"{total / 1e6:6.1f} MB  in all, each wheel once (limit {LIMIT_BYTES / 1e6:.0f} MB)")
    good = good and total <= LIMIT_BYTES
    own = " ".join(f"{chosen.folder}/wheels/{one}" for one in listed["reb"])
    print(f"there, once: python -m pip install --no-index --no-deps {own}")
    if not chosen.wheels_only:
        good = _sources(chosen.only, folder, chosen.place) and good
    return int(not good)


def _sources(tasks: list[str], folder: Path, place: str | None) -> bool:
    from researchenvbench import load_suite
    from researchenvbench.source import fetch_source

    good = True
    shutil.rmtree(folder / "mirrors", ignore_errors=True)
    only = [word for name in tasks for word in ("--only", name)]
    good = reb("sources", "mirror", folder / "mirrors", "paper44", *only,
               *(("--from", place) if place else ()))  # fmt: skip
    mirror = {"REB_SOURCE_MIRROR": str(folder / "mirrors")}
    cache = {"REB_CACHE": str(folder / "cache")}
    good = (
        reb("assets", "fetch", "paper44", "--assets", "stand-in", *only, **mirror, **cache) and good
    )
    for part in PRUNED:
        shutil.rmtree(folder / "cache" / "assets" / part, ignore_errors=True)
    suite, name = EXTENSION
    shutil.copytree(
        fetch_source(load_suite(suite).task(name)).tree, folder / "extension", dirs_exist_ok=True
    )
    for part in ("mirrors", "cache", "extension"):
        if (folder / part).is_dir():
            print(f"{weight(folder / part) / 1e6:6.1f} MB  {part}")
    return good


if __name__ == "__main__":
    sys.exit(main())
