"""The task that tricks are played on, made on the spot: repository, wheels, finished build."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import zipfile
from typing import TYPE_CHECKING

from researchenvbench.run.job import AttemptRun
from researchenvbench.run.store import Job

from ..conftest import GitRepository
from .catalogue import HERE

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = {"numlite": "2.1.0", "gradkit": "1.4.0"}
SCRIPTS = {"gradkit": "gradkit-run = gradkit.run:main"}
#: Variants of the task: what is replaced in `task.toml`.
TASKS = {
    "line": (),
    "torch": (("frameworks = []", 'frameworks = ["torch"]'),),
    "console": (
        ('launcher = "python"', 'launcher = "console_script"'),
        ('command = ["{python}", ', 'command = ["gradkit-run", '),
    ),
    "in-repository": (
        ('launcher = "python"', 'launcher = "python"\nfolder = "{repo}"'),
        ('pattern = "{work}/fit.json"', 'pattern = "{repo}/fit.json"'),
    ),
}


def make_tasks(folder: Path) -> dict[str, Path]:
    """The variants of the task, with a repository of git and wheels made on the spot."""
    repository = GitRepository(folder / "source")
    shutil.copytree(HERE / "task" / "repository", repository.folder, dirs_exist_ok=True)
    commit = repository.commit()
    text = (HERE / "task" / "task.toml").read_text()
    text = text.replace("SOURCE", str(repository.folder)).replace("0" * 40, commit)
    tasks = {}
    for name, changes in TASKS.items():
        changed = text
        for old, new in changes:
            assert old in changed
            changed = changed.replace(old, new)
        tasks[name] = folder / name / "line"
        tasks[name].mkdir(parents=True)
        (tasks[name] / "task.toml").write_text(changed)
        make_wheels(tasks[name] / "wheels")
    return tasks


def make_wheels(folder: Path) -> None:
    """A wheel of each of the task's packages, with all that an installer's would have."""
    folder.mkdir()
    for name, version in VERSIONS.items():
        source = HERE / "task" / "packages" / name
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        files = {str(path.relative_to(source)): path.read_bytes() for path in source.rglob("*.py")}
        files[f"{info}/METADATA"] = metadata.encode()
        files[f"{info}/WHEEL"] = (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        if name in SCRIPTS:
            files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{SCRIPTS[name]}\n".encode()
        record = [f"{path},{_hash(content)},{len(content)}" for path, content in files.items()]
        files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as wheel:
            for path, content in files.items():
                wheel.writestr(path, content)
        (folder / f"{name}-{version}-py3-none-any.whl").write_bytes(made.getvalue())


def _hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def make_attempt(folder: Path, task: Path, sandbox: str, **options: str) -> Path:
    """An attempt at the task whose build is done, by the recipe of the task."""
    attempt = folder / "attempts" / "line--1"
    attempt.mkdir(parents=True)
    Job(
        agent="gold",
        suite="adversarial",
        task_folder=str(task),
        task="line",
        sandbox=sandbox,
        sandbox_options=options,
    ).save(attempt / "job.json")
    built = AttemptRun(attempt).build()
    log = attempt / "logs" / "build.log"
    assert (built.outcome, built.exit_code) == ("finished", 0), (
        log.read_text() if log.exists() else built.reason
    )
    return attempt
