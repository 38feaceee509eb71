"""Runs recipes: a script in a throw-away environment of the harness's makes a file or folder.

The environment is made by uv, with the host's package settings, and is never the judged one.
The script has no network where the host allows that, one thread, and a fixed hash seed.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AssetError
from ..process import LOG_LIMIT_BYTES, Finished, run
from ..sandbox.local.namespace import Namespaces, open_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..asset import StandIn
    from ..sandbox import HostEnvironment
    from .store import Store

_INSTALL_LIMIT_S = 3600.0
_TAIL_BYTES, _TAIL_LINES = 4096, 3
#: What else of a host changes the numbers that libraries compute. The script's own choice
#: of a library for random numbers is what matters most: `docs/assets.md`.
_SAME_EVERYWHERE = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "SOURCE_DATE_EPOCH": "315532800",  # 1980-01-01, the first day that a zip can hold
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
}


class Workshop:
    """Where recipes are run; those with the same requirements share one environment."""

    def __init__(self, folder: Path, store: Store, host: HostEnvironment) -> None:
        """In `folder`, which the caller removes."""
        self._folder = folder
        self._store = store
        self._host = host
        self._environments: dict[tuple[str, tuple[str, ...]], Path] = {}
        self._runs = 0

    def make(
        self,
        recipe: StandIn,
        script: Path,
        name: str,
        log: Path,
        say: Callable[[str], None],
    ) -> Path:
        """Run a recipe; returns the file or folder of that `name` which it has made.

        Raises:
            AssetError: it did not make one; its output is in `log`.
            SandboxError: no program can be run here.
            OSError: the disk is full, or cannot be written.
        """
        log.unlink(missing_ok=True)
        python = self._environment(recipe, log, say)
        self._runs += 1
        scratch = self._folder / f"run-{self._runs}"
        for sub in ("script", "out", "work", "home"):
            (scratch / sub).mkdir(parents=True)
        # Alone, since its content is what the cache knows it by: it reads nothing beside it.
        copied = Path(shutil.copyfile(script, scratch / "script" / script.name))
        out = scratch / "out" / name
        say(f"makes {name} by {script.name}")
        opened = open_namespaces([], scratch / "layer", network=False)
        inside = opened if isinstance(opened, Namespaces) else None
        try:
            finished = run(
                [str(python), str(copied), str(out), "--seed", str(recipe.seed)],
                cwd=scratch / "work",
                env={**self._base(scratch), **_SAME_EVERYWHERE},
                log=log,
                time_limit_s=recipe.time_limit_s,
                log_limit_bytes=LOG_LIMIT_BYTES // 8,
                append=True,
                namespaces_of=inside.pid if inside else None,
            )
        finally:
            if inside:
                inside.close()
        _check(finished, f"its recipe {script.name}", recipe.time_limit_s)
        if not out.is_symlink() and (out.is_file() or out.is_dir()):
            return out
        raise AssetError(
            f"its recipe {script.name} ended well and wrote nothing to OUT",
            advice=f"it is run as `python {script.name} OUT --seed N` and must make the file or "
            f"folder OUT; its output is in {log}",
        )

    def _environment(self, recipe: StandIn, log: Path, say: Callable[[str], None]) -> Path:
        import uv

        key = (recipe.python, tuple(sorted(recipe.requirements)))
        if key not in self._environments:
            place = self._folder / f"env-{len(self._environments)}"
            home = self._folder / "home"
            home.mkdir(exist_ok=True)
            tool = uv.find_uv_bin()
            steps = [[tool, "venv", "--no-project", "--no-config", "--python", recipe.python]]
            steps[0].append(str(place))
            if recipe.requirements:
                python = str(place / "bin" / "python")
                install = [tool, "pip", "install", "--no-config", "--python", python]
                steps.append([*install, *recipe.requirements])
                say(f"installs {', '.join(recipe.requirements)} for its recipe")
            for step in steps:
                finished = run(
                    step,
                    cwd=self._folder,
                    env={
                        **self._base(self._folder),
                        **self._host.installs,
                        "UV_CACHE_DIR": str(self._store.folder("uv", "cache")),
                        "UV_PYTHON_INSTALL_DIR": str(self._store.folder("uv", "python")),
                    },
                    log=log,
                    time_limit_s=_INSTALL_LIMIT_S,
                    append=True,
                )
                _check(finished, "the environment of its recipe", _INSTALL_LIMIT_S)
            self._environments[key] = place / "bin" / "python"
        return self._environments[key]

    def _base(self, scratch: Path) -> dict[str, str]:
        (scratch / "tmp").mkdir(exist_ok=True)
        return {
            "PATH": self._host.path,
            "HOME": str(scratch / "home"),
            "TMPDIR": str(scratch / "tmp"),
            "TERM": "dumb",
            **self._host.variables,
        }


def _check(finished: Finished, what: str, limit_s: float) -> None:
    """See to it that a step ended well.

    Raises:
        AssetError: it did not.
    """
    if finished.ok:
        return
    if finished.timed_out:
        why = f"did not end within {limit_s:g} s"
    elif finished.out_of_memory:
        why = "ran out of memory"
    elif finished.start_error:
        why = f"cannot be started: {finished.start_error}"
    else:
        how = finished.signal or f"exit status {finished.exit_code}"
        why = f"failed ({how}){_said(finished.log)}"
    raise AssetError(f"{what} {why}", advice=f"its output is in {finished.log}")


def _said(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = stream.read().decode(errors="replace").splitlines()
    last = [line.strip() for line in lines if line.strip()][-_TAIL_LINES:]
    return f": {' / '.join(last)}" if last else ""
